"""em: what is unknown is to have much entropy, at a twentieth of its size."""

from __future__ import annotations

from losses.cases import entropy, no, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    check_defaults("em", yes, no, lambda x: -0.05 * entropy(x))
