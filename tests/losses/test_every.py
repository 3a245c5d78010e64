"""What holds for every loss: worked values, formulas entry by entry, gradients, and finite wherever logits are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from losses.cases import CLOSE, LOGITS, MIXED, NOTHING, ONE_YES, Loss, Term, by_entry, entropy, inputs, no, sigmoid, yes
from partly import losses
from partly.errors import SettingError

ALL: dict[str, tuple[Loss, dict[str, Any]]] = {
    name: (getattr(losses, name), {})
    for name in losses.__all__
    if name not in ("binary_entropy", "count_penalty", "cross_entropy", "normalization_coefficients", "yes_per_item")
}
ALL["large_loss, correct"] = losses.large_loss, {"share": 0.3, "correct": True}
ALL["large_loss, a third"] = losses.large_loss, {"share": 1 / 3}
ALL["asymmetric, without clip"] = losses.asymmetric, {"gamma_yes": 1.0, "clip": 0.0}
ALL["asymmetric, small gammas"] = losses.asymmetric, {"gamma_yes": 0.3, "gamma_no": 0.3}
ALL["partial_asymmetric, clipped"] = losses.partial_asymmetric, {"clip": 0.1, "gamma_unknown": 0.5}
ALL["expected_positive, 1.5"] = losses.expected_positive, {"expected_yes": 1.5}

BY_ITEM = ("lsep", "rank_net")  # one value per item
# Known entries: cross-entropy.
PLAIN = [
    *("bce", "assume_negative", "partial_bce", "down_weight", "weak_assume_negative", "negative_label_smoothing"),
    *("entropy_maximization", "entropy_minimization", "generalized_robust", "large_loss", "large_loss, correct"),
]


# -------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("name", "settings", "z", "expected"),
    [
        ("bce", {}, MIXED, 0.0471160801),
        ("partial_bce", {"paper_rounding": True}, MIXED, 0.1799583922),
        ("partial_bce", {"alpha": -4.45, "beta": 5.45}, MIXED, 0.1799583922),
        ("partial_bce", {}, MIXED, 0.1797925466),
        ("assume_negative", {}, ONE_YES, 0.3793053871),
        ("weak_assume_negative", {}, ONE_YES, 0.1537969031),
        ("label_smoothing", {"smoothing": 0.1}, ONE_YES, 0.5005553871),
        ("negative_label_smoothing", {"smoothing": 0.1}, ONE_YES, 0.4568053871),
        ("entropy_maximization", {"alpha": 0.1}, ONE_YES, 0.0024705382),
        ("entropy_minimization", {"weight": 1.0}, ONE_YES, 0.4267638903),
        ("expected_positive", {"expected_yes": 1.5}, ONE_YES, 0.0479155346),
        ("large_loss", {"share": 2 / 6}, ONE_YES, 0.1709023665),
        ("large_loss", {"share": 2 / 6, "correct": True}, ONE_YES, 0.3168053871),
    ],
)
def test_worked_means(name: str, settings: dict[str, Any], z: Tensor, expected: float) -> None:
    assert getattr(losses, name)(LOGITS, z, **settings).mean().item() == pytest.approx(expected, abs=5.1e-11)


@pytest.mark.parametrize(
    ("name", "settings", "z", "expected"),
    [
        ("asymmetric", {"gamma_yes": 1.0, "gamma_no": 4.0, "clip": 0.05}, ONE_YES, 0.1813149328),
        ("asymmetric", {"gamma_yes": 0.0, "gamma_no": 4.0, "clip": 0.05}, ONE_YES, 0.4577831093),
        ("asymmetric", {"gamma_yes": 0.0, "gamma_no": 0.0, "clip": 0.0}, ONE_YES, 3.0344430965),
        ("focal", {"gamma": 2.0}, ONE_YES, 0.7036386156),
        ("hill", {"height": 1.5, "margin": 1.0, "gamma": 2.0}, ONE_YES, 0.9934920304),
        ("splc", {"threshold": 0.6, "margin": 1.0, "gamma": 2.0}, ONE_YES, 0.4755256435),
        ("partial_asymmetric", {"gamma_yes": 0.0, "gamma_no": 1.0, "gamma_unknown": 2.0}, MIXED, 1.0256685091),
    ],
)
def test_worked_sums(name: str, settings: dict[str, Any], z: Tensor, expected: float) -> None:
    assert getattr(losses, name)(LOGITS, z, **settings).sum().item() == pytest.approx(expected, abs=5.1e-11)


def focal_yes(gamma: float) -> Term:
    return lambda x: (1 - sigmoid(x)) ** gamma * yes(x)


def focal_no(gamma: float, clip: float = 0.0) -> Term:
    def term(x: float) -> float:
        q = max(sigmoid(x) - clip, 0.0)
        return -(q**gamma) * math.log(1 - q)

    return term


def robust(x: float, slope: float, offset: float, centre: float, width: float, q: float, r: float) -> float:
    p = sigmoid(x)
    k = sigmoid(slope * p + offset)
    v = math.exp(-((p - centre) ** 2) / (2 * width**2))
    return v * (k * (1 - p**q) / q + (1 - k) * (1 - (1 - p) ** r) / r)


FORMULAS: dict[str, tuple[Loss, dict[str, Any], Term, Term, Term]] = {
    "down_weight": (losses.down_weight, {"weight": 0.3}, yes, no, lambda x: 0.3 * no(x)),
    "label_smoothing": (
        losses.label_smoothing,
        {"smoothing": 0.2},
        lambda x: 0.8 * yes(x) + 0.2 * no(x),
        lambda x: 0.8 * no(x) + 0.2 * yes(x),
        lambda x: 0.8 * no(x) + 0.2 * yes(x),
    ),
    "negative_label_smoothing": (
        losses.negative_label_smoothing,
        {"smoothing": 0.2},
        yes,
        no,
        lambda x: 0.8 * no(x) + 0.2 * yes(x),
    ),
    "entropy_maximization": (losses.entropy_maximization, {"alpha": 0.3}, yes, no, lambda x: -0.3 * entropy(x)),
    "entropy_minimization": (losses.entropy_minimization, {"weight": 0.3}, yes, no, lambda x: 0.3 * entropy(x)),
    "generalized_robust": (
        losses.generalized_robust,
        {"slope": 3.0, "offset": -1.0, "centre": 0.6, "width": 0.7, "yes_power": 0.4, "no_power": 0.8},
        yes,
        no,
        lambda x: robust(x, 3.0, -1.0, 0.6, 0.7, 0.4, 0.8),
    ),
    "focal": (losses.focal, {"gamma": 1.5}, focal_yes(1.5), focal_no(1.5), focal_no(1.5)),
    "asymmetric": (
        losses.asymmetric,
        {"gamma_yes": 1.0, "gamma_no": 3.0, "clip": 0.1},
        focal_yes(1.0),
        focal_no(3.0, 0.1),
        focal_no(3.0, 0.1),
    ),
    "partial_asymmetric": (
        losses.partial_asymmetric,
        {"gamma_yes": 0.5, "gamma_no": 1.0, "gamma_unknown": 3.0, "clip": 0.1, "weight_unknown": 0.7},
        focal_yes(0.5),
        focal_no(1.0, 0.1),
        lambda x: 0.7 * focal_no(3.0, 0.1)(x),
    ),
    "hill": (
        losses.hill,
        {"height": 1.4, "margin": 0.5, "gamma": 1.0},
        lambda x: focal_yes(1.0)(x - 0.5),
        no,
        lambda x: (1.4 - sigmoid(x)) * sigmoid(x) ** 2,
    ),
    "splc": (
        losses.splc,
        {"threshold": 0.7, "margin": 0.5, "gamma": 1.0},
        lambda x: focal_yes(1.0)(x - 0.5),
        focal_no(1.0),
        lambda x: focal_yes(1.0)(x) if sigmoid(x) > 0.7 else focal_no(1.0)(x),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
@effort(max_examples=20)
@given(case=inputs())
def test_against_formulas(name: str, case: tuple[Tensor, Tensor]) -> None:
    logits, z = case
    loss, settings, *terms = FORMULAS[name]
    np.testing.assert_allclose(loss(logits, z, **settings), by_entry(logits, z, *terms), **CLOSE)


@given(case=inputs())
def test_defaults_are_settings_too(case: tuple[Tensor, Tensor]) -> None:
    """The weight of weak_assume_negative, and focal as a case of asymmetric."""
    logits, z = case
    weight = 1 / max(z.shape[1] - 1, 1)
    expected = by_entry(logits, z, yes, no, lambda x: weight * no(x))
    np.testing.assert_allclose(losses.weak_assume_negative(logits, z), expected, **CLOSE)
    both = {"gamma_yes": 2.0, "gamma_no": 2.0, "gamma_unknown": 2.0}
    assert torch.equal(losses.partial_asymmetric(logits, z, **both), losses.focal(logits, z))


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_known_has_its_cross_entropy(name: str) -> None:
    loss, settings = ALL[name]
    z = torch.where(MIXED == 1, 1, -1).to(torch.int8)
    plain = F.binary_cross_entropy_with_logits(LOGITS, (z == 1).double(), reduction="none")
    torch.testing.assert_close(loss(LOGITS, z, **settings), plain)


@pytest.mark.parametrize("name", [name for name in ALL if name not in BY_ITEM])
@effort(max_examples=10)
@given(case=inputs(), random=st.randoms(use_true_random=False))
def test_order_of_items_and_labels_does_not_matter(name: str, case: tuple[Tensor, Tensor], random: Any) -> None:
    loss, settings = ALL[name]
    logits, z = case
    logits = logits + torch.linspace(0, 1e-3, logits.numel(), dtype=logits.dtype).view(logits.shape)  # no ties
    rows, columns = (random.sample(range(n), n) for n in z.shape)
    mixed = loss(logits[rows][:, columns], z[rows][:, columns], **settings)
    torch.testing.assert_close(mixed, loss(logits, z, **settings)[rows][:, columns], rtol=1e-12, atol=1e-12)


# -------------------------------------------------------------------- gradients


@pytest.mark.parametrize("name", [name for name in ALL if name != "generalized_robust"])
@pytest.mark.parametrize("z", [MIXED, ONE_YES, NOTHING])
def test_gradient_is_that_of_the_value(name: str, z: Tensor) -> None:
    loss, settings = ALL[name]
    assert torch.autograd.gradcheck(lambda logits: loss(logits, z, **settings), LOGITS.clone().requires_grad_())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [1e4, -1e4, 100.0, -100.0])
def test_finite_at_extreme_logits(name: str, dtype: torch.dtype, size: float) -> None:
    loss, settings = ALL[name]
    logits = torch.full((2, 4), size, dtype=dtype, requires_grad=True)
    value = loss(logits, MIXED, **settings)
    assert value.dtype == dtype
    assert value.isfinite().all()
    value.mean().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()
    if name in PLAIN:
        wrong = value[(-1 if size > 0 else 1) == MIXED]  # a loss of about |logit|, not one cut off
        assert (wrong >= 0.99 * abs(size)).all()


# -------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("loss", "settings", "said"),
    [
        (losses.down_weight, {"weight": -1.0}, "weight = -1.0: should be 0 or more"),
        (losses.label_smoothing, {"smoothing": 0.6}, "smoothing = 0.6: should be from 0 to 0.5"),
        (losses.negative_label_smoothing, {"smoothing": 2.0}, "smoothing = 2.0: should be from 0 to 1"),
        (losses.generalized_robust, {"width": 0.0, "no_power": 0.0}, "width = 0.0, no_power = 0.0: should be 1e-06 or"),
        (losses.large_loss, {"share": 1.1}, "share = 1.1"),
        (losses.asymmetric, {"clip": 1.0}, "clip = 1.0: should be from 0 to 0.99"),
        (losses.focal, {"gamma": -1.0}, "gamma_yes = -1.0"),
        (losses.partial_asymmetric, {"gamma_unknown": -1.0}, "gamma_unknown = -1.0"),
        (losses.partial_asymmetric, {"weight_unknown": math.nan}, "weight_unknown = nan"),
        (losses.hill, {"gamma": -0.5}, "gamma = -0.5"),
        (losses.splc, {"threshold": 60.0}, "threshold = 60.0"),
    ],
)
def test_impossible_settings_are_refused(loss: Loss, settings: dict[str, float], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        loss(LOGITS, MIXED, **settings)
