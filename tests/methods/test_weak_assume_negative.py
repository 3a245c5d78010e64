"""weak-assume-negative: all that is unknown of an item with one yes weighs as much as that yes."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from losses.cases import by_entry, no, yes
from methods.by_hand import check_against


def slow(logits: Tensor, z: Tensor) -> np.ndarray:
    return by_entry(logits, z, yes, no, lambda x: no(x) / (z.shape[1] - 1))


def test_defaults() -> None:
    check_against("weak-assume-negative", slow)
