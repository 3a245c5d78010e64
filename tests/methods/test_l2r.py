"""l2r: cross-entropy and a penalty on weights, by plain sums."""

from __future__ import annotations

import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task
from partly import losses
from partly.errors import SettingError
from partly.methods.l2r import L2R


def test_the_penalty_counts_weights_and_not_biases() -> None:
    pool = make_pool()
    made = L2R(make_task(pool), strength=0.01).eval()
    batch = pool.take(torch.arange(6))
    weights = [w for name, w in made.network.named_parameters() if name.endswith("weight")]
    assert len(weights) == 2
    penalty = sum(value**2 for w in weights for value in w.flatten().tolist())
    expected = losses.assume_negative(made(batch.x), batch.z).mean().item() + 0.01 * penalty
    slow = losses.assume_negative(made(batch.x), batch.z).mean() + 0.01 * sum((w**2).sum() for w in weights)
    gradients = torch.autograd.grad(slow, list(made.network.parameters()))
    assert made.update(batch, make_clock(pool))["loss"] == pytest.approx(expected, rel=1e-5)
    for parameter, gradient in zip(made.network.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    with pytest.raises(SettingError, match=r"strength = -1\.0"):
        L2R(make_task(pool), strength=-1.0)
