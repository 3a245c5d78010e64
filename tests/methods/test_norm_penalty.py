"""l1r and l2r: cross-entropy and a penalty on weights, by plain sums."""

from __future__ import annotations

import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task
from partly import losses
from partly.errors import SettingError
from partly.methods.norm_penalty import L1R, L2R


@pytest.mark.parametrize(("kind", "power"), [(L1R, 1), (L2R, 2)])
def test_the_penalty_counts_weights_and_not_biases(kind: type[L1R | L2R], power: int) -> None:
    pool = make_pool()
    method = kind(make_task(pool), strength=0.01).eval()
    batch = pool.take(torch.arange(6))
    weights = [w for name, w in method.network.named_parameters() if name.endswith("weight")]
    assert len(weights) == 2
    penalty = sum(abs(value) ** power for w in weights for value in w.flatten().tolist())
    expected = losses.assume_negative(method(batch.x), batch.z).mean().item() + 0.01 * penalty
    slow = losses.assume_negative(method(batch.x), batch.z).mean()
    slow = slow + 0.01 * sum((w.abs() ** power).sum() for w in weights)
    gradients = torch.autograd.grad(slow, list(method.network.parameters()))
    assert method.update(batch, make_clock(pool))["loss"] == pytest.approx(expected, rel=1e-5)
    for parameter, gradient in zip(method.network.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    with pytest.raises(SettingError, match=r"strength = -1\.0"):
        kind(make_task(pool), strength=-1.0)
