"""lsep: first cross-entropy, then the logarithm of a sum over pairs, by nested loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import make_clock, make_pool
from losses.cases import no, yes
from methods.by_hand import check_against, check_defaults
from methods.ranking import LATE, random_case
from partly import losses
from partly.clock import Clock
from partly.methods import lsep


def slow(logits: Tensor, z: Tensor) -> np.ndarray:
    """Per item."""
    found = []
    for scores, known in zip(logits.tolist(), z.tolist(), strict=True):
        pairs = [(p, n) for p, one in enumerate(known) if one == 1 for n, other in enumerate(known) if other == -1]
        found.append(math.log(1 + sum(math.exp(scores[n] - scores[p]) for p, n in pairs)))
    return np.array(found)


def test_defaults() -> None:
    check_defaults("lsep", yes, no, lambda _: 0.0, Clock(0, epochs=4, steps=3, epoch=1, step=2))
    check_against("lsep", slow, Clock(0, epochs=4, steps=3, epoch=2))


@pytest.mark.parametrize("unknown_as_no", [False, True])
def test_first_logistic_then_ranks(unknown_as_no: bool) -> None:
    logits, z = random_case()
    assert torch.equal(lsep.loss(logits, z, make_clock(make_pool())), losses.bce(logits, z))
    late = lsep.loss(logits, z, LATE, unknown_as_no=unknown_as_no)
    assert torch.equal(late, losses.lsep(logits, z, unknown_as_no=unknown_as_no))
