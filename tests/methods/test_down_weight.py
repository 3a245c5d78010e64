"""down-weight: what is unknown is a no that counts a twentieth."""

from __future__ import annotations

from losses.cases import no, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    check_defaults("down-weight", yes, no, lambda x: 0.05 * no(x))
