"""What all tests of losses share: small input, random input, and the schoolbook formulas of single entries."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

Loss = Callable[..., Tensor]
Term = Callable[[float], float]

LOGITS = torch.tensor([[2.0, -1.0, 0.5, -3.0], [-0.2, 1.5, -2.5, 0.0]], dtype=torch.float64)
MIXED = torch.tensor([[1, 0, 0, -1], [0, 1, 0, 0]], dtype=torch.int8)
ONE_YES = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0]], dtype=torch.int8)
NOTHING = torch.zeros(2, 4, dtype=torch.int8)
CLOSE = {"rtol": 1e-6, "atol": 1e-8}  # of 1 - p near p = 1 the loops know no more


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def yes(logit: float) -> float:
    """-log p"""
    return -math.log(sigmoid(logit))


def no(logit: float) -> float:
    """-log(1 - p)"""
    return -math.log(1 - sigmoid(logit))


def entropy(logit: float) -> float:
    p = sigmoid(logit)
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def by_entry(logits: Tensor, z: Tensor, for_yes: Term, for_no: Term, for_unknown: Term) -> np.ndarray:
    """Each entry by itself, with the term of what is known of it."""
    terms = {1: for_yes, -1: for_no, 0: for_unknown}
    rows = range(z.shape[0])
    return np.array([[terms[int(z[i, j])](logits[i, j].item()) for j in range(z.shape[1])] for i in rows])


@st.composite
def inputs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    size = shape[0] * shape[1]
    logits = draw(st.lists(st.floats(-20, 20), min_size=size, max_size=size))
    z = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=size, max_size=size))
    return torch.tensor(logits, dtype=torch.float64).view(shape), torch.tensor(z, dtype=torch.int8).view(shape)
