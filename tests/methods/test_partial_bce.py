"""partial-bce: what is known of an item counts the more, the less that is: 5 times at a tenth, once at all of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from losses.cases import by_entry, no, yes
from methods.by_hand import check_against
from partly import methods


def slow(logits: Tensor, z: Tensor) -> np.ndarray:
    entries = by_entry(logits, z, yes, no, lambda _: 0.0)
    for row, known in zip(entries, z.tolist(), strict=True):
        share = sum(said != 0 for said in known) / len(known)
        row *= 5 - 4 * (share - 0.1) / 0.9
    return entries


def test_defaults() -> None:
    check_against("partial-bce", slow)


def test_weights_of_single_items() -> None:
    """Ten labels at logit 0: each known entry has log 2."""
    z = torch.zeros(3, 10, dtype=torch.int8)
    z[0, 0], z[1], z[2, :5] = 1, -1, 1
    found = methods.find("partial-bce").make(torch.zeros(3, 10, dtype=torch.float64), z).sum(dim=1) / np.log(2)
    assert found.tolist() == pytest.approx([5, 10, 5 * (5 - 4 * 4 / 9)])
