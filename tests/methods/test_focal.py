"""focal: every entry counts by the square of how wrong it is; what is unknown is a no."""

from __future__ import annotations

from losses.cases import no, sigmoid, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    focal_no = lambda x: sigmoid(x) ** 2 * no(x)  # noqa: E731
    check_defaults("focal", lambda x: (1 - sigmoid(x)) ** 2 * yes(x), focal_no, focal_no)
