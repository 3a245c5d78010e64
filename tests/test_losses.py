"""Losses against worked values and slow loops in float64, and finite wherever logits are."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from partly import losses
from partly.errors import SettingError

Loss = Callable[..., Tensor]
LOGITS = torch.tensor([[2.0, -1.0, 0.5, -3.0], [-0.2, 1.5, -2.5, 0.0]], dtype=torch.float64)
MIXED = torch.tensor([[1, 0, 0, -1], [0, 1, 0, 0]], dtype=torch.int8)
ONE_YES = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0]], dtype=torch.int8)
NOTHING = torch.zeros(2, 4, dtype=torch.int8)
ALL: list[Loss] = [losses.bce, losses.assume_negative, losses.partial_bce]


def entry(logit: float, yes: bool) -> float:
    """-log of the probability of what is true, by the schoolbook."""
    p = 1 / (1 + math.exp(-logit))
    return -math.log(p if yes else 1 - p)


def slow_bce(logits: Tensor, z: Tensor, unknown_is_no: bool = False) -> np.ndarray:
    out = np.zeros(tuple(z.shape))
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            if z[i, j] != 0 or unknown_is_no:
                out[i, j] = entry(logits[i, j].item(), z[i, j] == 1)
    return out


def slow_partial_bce(logits: Tensor, z: Tensor, alpha: float, beta: float, gamma: float) -> np.ndarray:
    out = slow_bce(logits, z)
    for i in range(z.shape[0]):
        known = sum(int(v != 0) for v in z[i])
        if known:
            out[i] *= alpha * (known / z.shape[1]) ** gamma + beta
    return out


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    size = shape[0] * shape[1]
    logits = draw(st.lists(st.floats(-20, 20), min_size=size, max_size=size))
    z = draw(st.lists(st.sampled_from([-1, 0, 1]), min_size=size, max_size=size))
    return torch.tensor(logits, dtype=torch.float64).view(shape), torch.tensor(z, dtype=torch.int8).view(shape)


# -------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("loss", "settings", "z", "expected"),
    [
        (losses.bce, {}, MIXED, 0.0471160801),
        (losses.partial_bce, {"paper_rounding": True}, MIXED, 0.1799583922),
        (losses.partial_bce, {"alpha": -4.45, "beta": 5.45}, MIXED, 0.1799583922),
        (losses.partial_bce, {}, MIXED, 0.1797925466),
        (losses.assume_negative, {}, ONE_YES, 0.3793053871),
    ],
)
def test_worked_values(loss: Loss, settings: dict[str, float], z: Tensor, expected: float) -> None:
    assert loss(LOGITS, z, **settings).mean().item() == pytest.approx(expected, abs=5e-11)


@given(cases())
def test_against_loops(case: tuple[Tensor, Tensor]) -> None:
    logits, z = case
    close = {"rtol": 1e-6, "atol": 1e-8}  # of 1 - p near p = 1 the loop knows no more
    np.testing.assert_allclose(losses.bce(logits, z), slow_bce(logits, z), **close)
    np.testing.assert_allclose(losses.assume_negative(logits, z), slow_bce(logits, z, unknown_is_no=True), **close)
    np.testing.assert_allclose(
        losses.partial_bce(logits, z), slow_partial_bce(logits, z, -4 / 0.9, 1 + 4 / 0.9, 1), **close
    )
    np.testing.assert_allclose(
        losses.partial_bce(logits, z, alpha=0.5, beta=0.25, gamma=2.0),
        slow_partial_bce(logits, z, 0.5, 0.25, 2),
        **close,
    )


@given(cases(), st.randoms(use_true_random=False))
def test_order_of_items_and_labels_does_not_matter(case: tuple[Tensor, Tensor], random: object) -> None:
    logits, z = case
    rows, columns = (random.sample(range(n), n) for n in z.shape)  # type: ignore[attr-defined]
    for loss in ALL:
        mixed = loss(logits[rows][:, columns], z[rows][:, columns])
        torch.testing.assert_close(mixed, loss(logits, z)[rows][:, columns], rtol=1e-12, atol=1e-12)


def test_full_labels_make_all_of_them_plain_cross_entropy() -> None:
    z = torch.where(MIXED == 1, 1, -1).to(torch.int8)
    plain = F.binary_cross_entropy_with_logits(LOGITS, (z == 1).double())
    for loss in ALL:
        torch.testing.assert_close(loss(LOGITS, z).mean(), plain)


@pytest.mark.parametrize(("p0", "value", "gamma"), [(0.1, 5.0, 1.0), (0.5, 3.0, -0.5), (0.2, 0.5, 2.0)])
def test_normaliser_meets_both_conditions(p0: float, value: float, gamma: float) -> None:
    alpha, beta = losses.normaliser(p0, value, gamma)
    assert alpha * p0**gamma + beta == pytest.approx(value)
    assert alpha + beta == pytest.approx(1)


@pytest.mark.parametrize(("p0", "gamma"), [(0.0, 1.0), (1.0, 1.0), (-0.1, 1.0), (0.1, 0.0)])
def test_normaliser_refuses_what_it_cannot_solve(p0: float, gamma: float) -> None:
    with pytest.raises(SettingError, match=f"p0 = {p0}, gamma = {gamma}"):
        losses.normaliser(p0, 5.0, gamma)


# -------------------------------------------------------------------- finite, and blind to what is unknown


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [1e4, -1e4])
def test_finite_at_extreme_logits(loss: Loss, dtype: torch.dtype, size: float) -> None:
    logits = torch.full((2, 4), size, dtype=dtype, requires_grad=True)
    value = loss(logits, MIXED)
    assert value.dtype == dtype
    assert value.isfinite().all()
    value.mean().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    wrong = value[(-1 if size > 0 else 1) == MIXED]  # a loss of about |logit|, not one cut off
    assert (wrong >= 0.99e4).all()


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


@pytest.mark.parametrize("loss", ALL)
@pytest.mark.parametrize("z", [MIXED, ONE_YES, NOTHING])
def test_gradient_is_that_of_the_value(loss: Loss, z: Tensor) -> None:
    assert torch.autograd.gradcheck(lambda logits: loss(logits, z), LOGITS.clone().requires_grad_())


def test_gradient_of_partial_bce_with_negative_gamma() -> None:
    z = torch.stack([MIXED[0], NOTHING[0]])
    run = lambda logits: losses.partial_bce(logits, z, gamma=-0.5)  # noqa: E731
    assert torch.autograd.gradcheck(run, LOGITS.clone().requires_grad_())
