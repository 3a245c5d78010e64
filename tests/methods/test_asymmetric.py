"""asymmetric: no, known or not, counts by how wrong it is, and not at all below p = 0.2."""

from __future__ import annotations

import math

from losses.cases import no, sigmoid, yes
from methods.by_hand import check_defaults


def clipped(x: float) -> float:
    q = max(sigmoid(x) - 0.2, 0.0)
    return -q * math.log(1 - q)


def test_defaults() -> None:
    check_defaults("asymmetric", yes, clipped, clipped)
    assert clipped(-1.5) == 0 < clipped(-1.3) < no(-1.3)
