"""label-smoothing: every target is a tenth away from where it would be; what is unknown is a no."""

from __future__ import annotations

from losses.cases import no, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    smoothed_no = lambda x: 0.1 * yes(x) + 0.9 * no(x)  # noqa: E731
    check_defaults("label-smoothing", lambda x: 0.9 * yes(x) + 0.1 * no(x), smoothed_no, smoothed_no)
