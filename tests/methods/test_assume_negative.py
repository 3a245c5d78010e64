"""assume-negative: what is unknown has the cross-entropy of a no."""

from __future__ import annotations

from losses.cases import no, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    check_defaults("assume-negative", yes, no, no)
