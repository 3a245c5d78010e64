"""Binary cross-entropy: weighted by how much is known, and blind to what is unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import Tensor

from losses.cases import CLOSE, LOGITS, MIXED, NOTHING, Loss, by_entry, inputs, no, yes
from partly import losses
from partly.errors import SettingError


def slow_partial_bce(logits: Tensor, z: Tensor, alpha: float, beta: float, gamma: float) -> np.ndarray:
    out = by_entry(logits, z, yes, no, lambda _: 0.0)
    for i in range(z.shape[0]):
        known = sum(int(v != 0) for v in z[i])
        if known:
            out[i] *= alpha * (known / z.shape[1]) ** gamma + beta
    return out


@given(inputs())
def test_against_loops(case: tuple[Tensor, Tensor]) -> None:
    logits, z = case
    np.testing.assert_allclose(losses.bce(logits, z), by_entry(logits, z, yes, no, lambda _: 0.0), **CLOSE)
    np.testing.assert_allclose(losses.assume_negative(logits, z), by_entry(logits, z, yes, no, no), **CLOSE)
    np.testing.assert_allclose(
        losses.partial_bce(logits, z), slow_partial_bce(logits, z, -4 / 0.9, 1 + 4 / 0.9, 1), **CLOSE
    )
    np.testing.assert_allclose(
        losses.partial_bce(logits, z, alpha=0.5, beta=0.25, gamma=2.0),
        slow_partial_bce(logits, z, 0.5, 0.25, 2),
        **CLOSE,
    )


@pytest.mark.parametrize("loss", [losses.bce, losses.partial_bce])
@pytest.mark.parametrize("hidden", [0.5, math.nan, math.inf])
def test_known_entries_alone_give_the_same(loss: Loss, hidden: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where few are known the others are not touched, whatever their logits are."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randint(-1, 2, (6, 5), generator=generator, dtype=torch.int8)
    z[2] = 0
    found = []
    for share in (0.0, 2.0):
        monkeypatch.setattr("partly.losses.basic.MIN_ENTRIES_TO_COUNT", 0)
        monkeypatch.setattr("partly.losses.basic.SPARSE_SHARE", share)
        logits = torch.randn(6, 5, generator=generator.manual_seed(1)).masked_fill(z == 0, hidden).requires_grad_()
        entries = loss(logits, z)
        entries.sum().backward()
        found.append((entries.detach(), logits.grad))
    torch.testing.assert_close(found[1], found[0], rtol=1e-6, atol=0)
    assert (found[1][0][z == 0] == 0).all()
    assert (found[1][1][z == 0] == 0).all()


@pytest.mark.parametrize(("share", "few"), [(0.05, True), (0.5, False)])
def test_what_is_little_is_picked_out_of_much(share: float, few: bool) -> None:
    """Told by how the losses were made."""
    z = torch.zeros(512, 256, dtype=torch.int8)
    z[: int(512 * share)] = 1
    entries = losses.bce(torch.zeros(512, 256, requires_grad=True), z)
    assert type(entries.grad_fn).__name__.startswith("IndexPut") is few


def test_soft_targets() -> None:
    target = torch.tensor([[0.0, 1.0, 0.25, 0.5], [0.1, 0.9, 0.6, 0.3]], dtype=torch.float16)
    expected = [
        [t * yes(x) + (1 - t) * no(x) for x, t in zip(*row, strict=True)]
        for row in zip(LOGITS.tolist(), target.tolist(), strict=True)
    ]
    np.testing.assert_allclose(losses.cross_entropy(LOGITS, target), expected, rtol=1e-12)


@pytest.mark.parametrize(("p0", "value", "gamma"), [(0.1, 5.0, 1.0), (0.5, 3.0, -0.5), (0.2, 0.5, 2.0)])
def test_normaliser_meets_both_conditions(p0: float, value: float, gamma: float) -> None:
    alpha, beta = losses.normalization_coefficients(p0, value, gamma)
    assert alpha * p0**gamma + beta == pytest.approx(value)
    assert alpha + beta == pytest.approx(1)


@pytest.mark.parametrize(("p0", "gamma"), [(0.0, 1.0), (1.0, 1.0), (-0.1, 1.0), (0.1, 0.0)])
def test_normaliser_refuses_what_it_cannot_solve(p0: float, gamma: float) -> None:
    with pytest.raises(SettingError, match=f"p0 = {p0}, gamma = {gamma}"):
        losses.normalization_coefficients(p0, 5.0, gamma)


@pytest.mark.parametrize("loss", [losses.bce, losses.partial_bce])
@pytest.mark.parametrize("hidden", [math.nan, math.inf, -math.inf])
def test_nothing_leaks_from_unknown_entries(loss: Loss, hidden: float) -> None:
    values, gradients = [], []
    for logits in (LOGITS.clone(), torch.where(MIXED == 0, hidden, LOGITS)):
        logits.requires_grad_()
        loss(logits, MIXED).mean().backward()
        values.append(loss(logits, MIXED))
        gradients.append(logits.grad)
    assert torch.equal(*values)
    assert torch.equal(*gradients)
    assert (gradients[0][MIXED == 0] == 0).all()
    assert (gradients[0][MIXED != 0] != 0).all()


@pytest.mark.parametrize("gamma", [-1.0, -0.5, 1.0])
def test_an_item_of_which_nothing_is_known_has_no_loss(gamma: float) -> None:
    logits = LOGITS.clone().requires_grad_()
    value = losses.partial_bce(logits, NOTHING, gamma=gamma)
    value.mean().backward()
    assert (value == 0).all()
    assert logits.grad is not None
    assert (logits.grad == 0).all()


def test_gradient_of_partial_bce_with_negative_gamma() -> None:
    z = torch.stack([MIXED[0], NOTHING[0]])
    run = lambda logits: losses.partial_bce(logits, z, gamma=-0.5)  # noqa: E731
    assert torch.autograd.gradcheck(run, LOGITS.clone().requires_grad_())
