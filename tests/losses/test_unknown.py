"""Losses of unknown entries: which way they pull, how many they choose, and what they never touch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from losses.cases import CLOSE, LOGITS, MIXED, ONE_YES, by_entry, entropy, inputs, no, sigmoid, yes
from partly import losses

MANY = torch.linspace(-30, 30, 241, dtype=torch.float64).view(1, -1)  # 0 is in the middle
UNKNOWN = torch.zeros(MANY.shape, dtype=torch.int8)


def gradient(loss: object, logits: Tensor, z: Tensor, **settings: object) -> Tensor:
    """Of the sum over all entries."""
    logits = logits.clone().requires_grad_()
    loss(logits, z, **settings).sum().backward()  # type: ignore[operator]
    assert logits.grad is not None
    return logits.grad


# -------------------------------------------------------------------- entropy


def test_maximal_entropy_pulls_towards_one_half() -> None:
    """A step against the gradient makes |logit| smaller, at every logit but 0, where nothing pulls."""
    pull = -gradient(losses.entropy_maximization, MANY, UNKNOWN, alpha=0.2)
    assert torch.equal(pull.sign(), -MANY.sign())
    p = torch.sigmoid(MANY)
    torch.testing.assert_close(pull, -0.2 * MANY * p * torch.sigmoid(-MANY), rtol=1e-12, atol=0)


def test_minimal_entropy_pushes_away_from_one_half() -> None:
    pull = -gradient(losses.entropy_minimization, MANY, UNKNOWN)
    assert torch.equal(pull.sign(), MANY.sign())


def test_entropy_keeps_its_digits() -> None:
    values = losses.binary_entropy(torch.tensor([-60.0, -20.0, 0.0, 20.0, 60.0]))
    # For large |x| the entropy is (|x| + 1) exp(-|x|).
    expected = [61 * np.exp(-60), 21 * np.exp(-20), np.log(2), 21 * np.exp(-20), 61 * np.exp(-60)]
    np.testing.assert_allclose(values, expected, rtol=1e-6)
    assert losses.binary_entropy(torch.tensor(-1.3)).item() == pytest.approx(entropy(-1.3), rel=1e-6)


# -------------------------------------------------------------------- how many yes an item has


@given(inputs())
def test_expected_positive_against_loops(case: tuple[Tensor, Tensor]) -> None:
    logits, z = case
    items, labels = z.shape
    predicted = sum(sigmoid(x) for row in logits.tolist() for x in row) / items
    expected = by_entry(logits, z, yes, no, lambda _: 0.0).mean() + ((predicted - 1.5) / labels) ** 2
    np.testing.assert_allclose(losses.expected_positive(logits, z, expected_yes=1.5).mean(), expected, **CLOSE)
    guess = losses.yes_per_item(int((z == 1).sum()), int((z == -1).sum()), items, labels)
    assert torch.equal(losses.expected_positive(logits, z), losses.expected_positive(logits, z, expected_yes=guess))


def test_yes_per_item() -> None:
    assert losses.yes_per_item(yes=3, no=9, items=5, labels=8) == 2.0  # a quarter of eight labels
    assert losses.yes_per_item(yes=6, no=0, items=4, labels=8) == 1.5  # only yes is known
    assert losses.yes_per_item(yes=0, no=9, items=5, labels=8) == 0.0
    assert losses.yes_per_item(yes=0, no=0, items=0, labels=8) == 0.0


def test_too_many_predicted_yes_are_pushed_down_and_too_few_up() -> None:
    nothing = torch.zeros(2, 4, dtype=torch.int8)
    assert (gradient(losses.expected_positive, LOGITS, nothing, expected_yes=1.0) > 0).all()  # predicted are 1.8
    assert (gradient(losses.expected_positive, LOGITS, nothing, expected_yes=3.0) < 0).all()


# -------------------------------------------------------------------- generalized robust


def test_no_gradient_flows_through_mixture_and_weight() -> None:
    settings = {"slope": 3.0, "offset": -1.0, "centre": 0.6, "width": 0.7, "yes_power": 0.4, "no_power": 0.8}
    found = gradient(losses.generalized_robust, LOGITS, MIXED, **settings)
    for place in (MIXED == 0).nonzero().tolist():
        p = sigmoid(LOGITS[tuple(place)].item())
        k, v = sigmoid(3 * p - 1), np.exp(-((p - 0.6) ** 2) / (2 * 0.7**2))
        slope = v * (k * -(p**-0.6) + (1 - k) * (1 - p) ** -0.2) * p * (1 - p)
        assert found[tuple(place)].item() == pytest.approx(slope, rel=1e-9)


# -------------------------------------------------------------------- large losses


@given(inputs(), st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0]))
def test_large_loss_against_loops(case: tuple[Tensor, Tensor], share: float) -> None:
    logits, z = case
    logits = logits + torch.linspace(0, 1e-3, logits.numel(), dtype=logits.dtype).view(logits.shape)  # no ties
    unknown = sorted((no(logits[i, j].item()), i, j) for i, j in (z == 0).nonzero().tolist())
    count = min(len(unknown), int(np.ceil(len(unknown) * share - 1e-9)))
    rejected = by_entry(logits, z, yes, no, no)
    corrected = rejected.copy()
    for _, i, j in unknown[len(unknown) - count :]:
        rejected[i, j], corrected[i, j] = 0.0, yes(logits[i, j].item())
    np.testing.assert_allclose(losses.large_loss(logits, z, share=share), rejected, **CLOSE)
    np.testing.assert_allclose(losses.large_loss(logits, z, share=share, correct=True), corrected, **CLOSE)


def test_a_rejected_entry_leaks_nothing() -> None:
    for hidden in (float("inf"), float("nan")):
        logits = torch.where(torch.arange(8).view(2, 4) == 2, hidden, LOGITS).requires_grad_()
        value = losses.large_loss(logits, ONE_YES, share=0.1)  # one of six: nothing is larger
        value.sum().backward()
        assert value[0, 2] == 0
        assert logits.grad is not None
        assert logits.grad.isfinite().all()
        assert logits.grad[0, 2] == 0


def test_known_no_is_never_rejected_nor_corrected() -> None:
    z = torch.where(ONE_YES == 0, -1, ONE_YES).to(torch.int8)
    for correct in (False, True):
        assert torch.equal(losses.large_loss(LOGITS, z, share=1.0, correct=correct), losses.bce(LOGITS, z))
