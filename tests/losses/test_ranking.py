"""Losses of pairs against loops over the pairs, worked values, and what is in no pair."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from torch import Tensor

from losses.cases import LOGITS, MIXED, NOTHING, ONE_YES, inputs
from partly import losses

BOTH = pytest.mark.parametrize("loss", [losses.lsep, losses.rank_net])


def gaps(logits: Tensor, z: Tensor, item: int, unknown_as_no: bool) -> list[float]:
    """s_n - s_p of every pair of an item, in nested loops."""
    labels = range(z.shape[1])
    yes = [j for j in labels if z[item, j] == 1]
    no = [j for j in labels if z[item, j] == -1 or (unknown_as_no and z[item, j] == 0)]
    return [logits[item, n].item() - logits[item, p].item() for p in yes for n in no]


@effort(max_examples=50, deadline=None)
@given(inputs(), st.booleans())
def test_against_loops(case: tuple[Tensor, Tensor], unknown_as_no: bool) -> None:
    logits, z = case
    pairs = [gaps(logits, z, i, unknown_as_no) for i in range(len(z))]
    sums = [math.log1p(sum(math.exp(gap) for gap in row)) for row in pairs]
    means = [sum(math.log1p(math.exp(gap)) for gap in row) / max(len(row), 1) for row in pairs]
    np.testing.assert_allclose(losses.lsep(logits, z, unknown_as_no=unknown_as_no), sums, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(losses.rank_net(logits, z, unknown_as_no=unknown_as_no), means, rtol=1e-9, atol=1e-15)


def test_worked_values() -> None:
    found = losses.lsep(LOGITS, ONE_YES, unknown_as_no=True)
    assert found.tolist() == pytest.approx([0.2465906475, 0.3535606256], abs=5.1e-11)
    assert losses.rank_net(LOGITS, ONE_YES, unknown_as_no=True).mean().item() == pytest.approx(
        0.1073442022, abs=5.1e-11
    )
    one_pair = math.log1p(math.exp(-3 - 2))  # of the first item: its yes scores 2, its known no -3
    for loss in (losses.lsep, losses.rank_net):
        assert loss(LOGITS, MIXED).tolist() == pytest.approx([one_pair, 0.0], abs=1e-12)


@BOTH
def test_unknown_is_in_no_pair(loss: Callable[..., Tensor]) -> None:
    logits = torch.where(MIXED == 0, math.nan, LOGITS).requires_grad_()
    value = loss(logits, MIXED)
    value.mean().backward()
    assert torch.equal(value, loss(LOGITS, MIXED))
    assert logits.grad is not None
    assert (logits.grad[MIXED == 0] == 0).all()
    assert (logits.grad[0, [0, 3]].sign() == torch.tensor([-1, 1])).all()  # yes up, no down
    assert loss(LOGITS, NOTHING).tolist() == loss(LOGITS, ONE_YES).tolist() == [0.0, 0.0]


@BOTH
def test_items_and_labels_in_another_order(loss: Callable[..., Tensor]) -> None:
    z = torch.tensor([[1, 0, 1, -1], [-1, 1, 0, -1]], dtype=torch.int8)
    torch.testing.assert_close(loss(LOGITS.flip(0, 1), z.flip(0, 1)).flip(0), loss(LOGITS, z), rtol=1e-12, atol=0)
