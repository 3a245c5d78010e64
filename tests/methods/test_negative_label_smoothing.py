"""negative-label-smoothing: what is unknown is yes with a tenth; what is known is what it is."""

from __future__ import annotations

from losses.cases import no, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    check_defaults("negative-label-smoothing", yes, no, lambda x: 0.1 * yes(x) + 0.9 * no(x))
