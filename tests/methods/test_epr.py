"""epr: the cross-entropy of what is known, and a penalty on the number of yes per item, guessed from the batch."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from losses.cases import CLOSE, LOGITS, by_entry, no, sigmoid, yes
from methods.by_hand import check_against
from partly import methods


def slow(logits: Tensor, z: Tensor) -> np.ndarray:
    """Where some no is known: of L labels, as many are yes as of what is known."""
    known = [int(said) for said in z.flatten() if said]
    labels = z.shape[1]
    return penalised(logits, z, labels * known.count(1) / len(known))


def penalised(logits: Tensor, z: Tensor, expected: float) -> np.ndarray:
    items, labels = z.shape
    predicted = sum(sigmoid(x) for row in logits.tolist() for x in row) / items
    return by_entry(logits, z, yes, no, lambda _: 0.0) + ((predicted - expected) / labels) ** 2


def test_defaults() -> None:
    check_against("epr", slow)


def test_where_only_yes_is_known() -> None:
    """Three known yes of two items."""
    z = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0]], dtype=torch.int8)
    np.testing.assert_allclose(methods.find("epr").make(LOGITS, z), penalised(LOGITS, z, 1.5), **CLOSE)
