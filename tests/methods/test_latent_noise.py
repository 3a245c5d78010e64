"""latent-noise: the mixture against probabilities, its first odds, and which classifier learns and predicts when."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task, x_of
from losses.cases import sigmoid
from partly import losses
from partly.clock import Clock
from partly.methods.latent_noise import LatentNoise, mixture

LATE = Clock(0, epochs=4, steps=3, epoch=3)


def test_mixture_of_probabilities() -> None:
    logits = torch.from_numpy(np.random.default_rng(1).normal(scale=3, size=(3, 20)))
    for there, if_there, if_not, found in zip(*logits.tolist(), mixture(*logits).tolist(), strict=True):
        said = sigmoid(if_there) * sigmoid(there) + sigmoid(if_not) * (1 - sigmoid(there))
        assert sigmoid(found) == pytest.approx(said, rel=1e-9)


def test_mixture_is_finite_and_its_gradient_that_of_the_value() -> None:
    ends = torch.tensor([1e4, -1e4, 0.0], dtype=torch.float32)
    three = [part.clone().requires_grad_() for part in torch.cartesian_prod(ends, ends, ends).T]
    found = mixture(*three)
    found.sum().backward()
    assert found.isfinite().all()
    assert all(part.grad is not None and part.grad.isfinite().all() for part in three)
    given = torch.from_numpy(np.random.default_rng(2).normal(size=(3, 5)))
    assert torch.autograd.gradcheck(mixture, [part.clone().requires_grad_() for part in given])


def test_what_is_there_is_said_27_to_1_at_first() -> None:
    pool = make_pool()
    both = (LatentNoise(make_task(pool), predicts=name).eval() for name in ("visual", "relevance"))
    visual, relevance = (made(x_of(pool.items)) for made in both)
    h = torch.sigmoid(visual)
    torch.testing.assert_close(torch.sigmoid(relevance), (27 * h + (1 - h)) / 28, rtol=0, atol=1e-3)
    assert math.exp(3.29) == pytest.approx(27, abs=0.2)


@pytest.mark.parametrize(("unknown_as_no", "loss"), [(False, losses.bce), (True, losses.assume_negative)])
def test_first_the_visual_classifier_then_the_relevance(unknown_as_no: bool, loss: object) -> None:
    pool = make_pool()
    batch = pool.take(torch.arange(8))
    for clock, name in ((make_clock(pool), "visual"), (LATE, "relevance")):
        made = LatentNoise(make_task(pool), predicts=name, unknown_as_no=unknown_as_no).eval()
        before = made.noise.weight.detach().clone()
        value = loss(made(batch.x), batch.z).mean().item()  # type: ignore[operator]
        assert made.update(batch, clock)["loss"] == pytest.approx(value, rel=1e-5)
        assert torch.equal(made.noise.weight, before) == (name == "visual")
