"""entropy-minimization: what is unknown is to have little entropy."""

from __future__ import annotations

from losses.cases import entropy, no, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    check_defaults("entropy-minimization", yes, no, entropy)
