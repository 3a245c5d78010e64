"""Methods that are a loss and a little more: weight penalties, and losses that change with the epochs."""

from __future__ import annotations

import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task
from partly import losses
from partly.clock import Clock
from partly.errors import SettingError
from partly.methods import generalized_robust, splc
from partly.methods.l1r import L1R
from partly.methods.l2r import L2R


@pytest.mark.parametrize(("kind", "power"), [(L1R, 1), (L2R, 2)])
def test_penalties_count_weights_and_not_biases(kind: type[L1R] | type[L2R], power: int) -> None:
    pool = make_pool()
    made = kind(make_task(pool), strength=0.01).eval()
    batch = pool.take(torch.arange(6))
    weights = [w for name, w in made.network.named_parameters() if name.endswith("weight")]
    assert len(weights) == 2
    penalty = sum(abs(value) ** power for w in weights for value in w.flatten().tolist())
    expected = losses.assume_negative(made(batch.x), batch.z).mean().item() + 0.01 * penalty
    slow = losses.assume_negative(made(batch.x), batch.z).mean() + 0.01 * sum((w.abs() ** power).sum() for w in weights)
    gradients = torch.autograd.grad(slow, list(made.network.parameters()))
    assert made.update(batch, make_clock(pool))["loss"] == pytest.approx(expected, rel=1e-5)
    for parameter, gradient in zip(made.network.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)
    with pytest.raises(SettingError, match=r"strength = -1\.0"):
        kind(make_task(pool), strength=-1.0)


def test_splc_takes_nothing_for_yes_before_its_start() -> None:
    logits, z = torch.full((1, 2), 3.0), torch.tensor([[0, -1]], dtype=torch.int8)
    before, after = (
        splc.loss(logits, z, Clock(0, epochs=10, steps=4, epoch=epoch, step=step), start=0.25)
        for epoch, step in ((2, 1), (2, 2))
    )
    assert torch.equal(before[0, 0], before[0, 1])
    assert after[0, 0] < 0.01 < after[0, 1]
    assert torch.equal(after[0, 1], before[0, 1])


def test_generalized_robust_goes_from_start_to_end() -> None:
    logits, z = torch.tensor([[-2.0, 0.5, 2.0, 1.0]]), torch.tensor([[0, 0, 0, 1]], dtype=torch.int8)
    ends = {"slope": (0.0, 4.0), "offset": (-2.0, -6.0), "centre": (0.5, 0.9), "width": (2.0, 1.0)}
    settings = {
        f"{name}_{end}": v for name, pair in ends.items() for end, v in zip(("start", "end"), pair, strict=True)
    }
    for epoch, share in ((0, 0.0), (1, 0.25), (4, 1.0)):
        now = {name: (1 - share) * a + share * b for name, (a, b) in ends.items()}
        found = generalized_robust.loss(logits, z, Clock(0, epochs=4, epoch=epoch), **settings)
        torch.testing.assert_close(found, losses.generalized_robust(logits, z, **now))
