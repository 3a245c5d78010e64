"""The stacked regression, against a general optimizer and a numerical Hessian."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from partly.teachers import stacking
from partly.teachers.stacking import Entries

LABELS = 6


def entries(teacher: float, model: float = 1.0, count: int = 1500, seed: int = 0) -> Entries:
    """Entries of which the model's logit and a teacher's two scores say so much."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(count, 3))
    label = np.sort(rng.integers(0, LABELS - 1, count))  # the last label has no entry
    logits = model * inputs[:, 0] + teacher * inputs[:, 2] - 1.5 + 0.3 * label
    target = (rng.random(count) < 1 / (1 + np.exp(-logits))).astype(float)
    return Entries(label, rng.integers(0, count // 3, count), inputs, target, rng.uniform(0.5, 1.5, count))


def penalized(theta: np.ndarray, data: Entries, center: float) -> float:
    """The objective of the pooled fit, written out."""
    slopes, bias = theta[:3], theta[3:]
    total = 0.0
    for x, j, y, w in zip(data.inputs, data.label, data.target, data.weight, strict=True):
        z = x @ slopes + bias[j]
        total += w * (np.logaddexp(0, z) - y * z)
    prior = np.array([stacking.MODEL_SLOPE, stacking.LABEL_SLOPE, stacking.ITEM_SLOPE])
    total += stacking.POOLED_PRECISION / 2 * np.square(slopes - prior).sum()
    return float(total + stacking.BIAS_PRECISION / 2 * np.square(bias - center).sum())


def test_pooled_slopes_and_evidence_by_a_general_optimizer() -> None:
    data = entries(0.8, count=200)
    yes, total = data.weight @ data.target, data.weight.sum()
    center = np.log((yes + 0.5) / (total - yes + 0.5))
    found = stacking.fit_pooled(data, LABELS)
    best = minimize(penalized, np.zeros(3 + LABELS), (data, center), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose([*found.pooled, *found.bias], best.x, atol=1e-3)
    size, step = 3 + LABELS, 1e-3
    hessian = np.empty((size, size))
    for a in range(size):
        for b in range(size):
            ea, eb = step * np.eye(size)[a], step * np.eye(size)[b]
            corners = [penalized(best.x + s * ea + t * eb, data, center) * s * t for s in (-1, 1) for t in (-1, 1)]
            hessian[a, b] = sum(corners) / (4 * step * step)
    precisions = 3 * [stacking.POOLED_PRECISION] + LABELS * [stacking.BIAS_PRECISION]
    expected = -best.fun - 0.5 * (np.linalg.slogdet(hessian)[1] - np.log(precisions).sum())
    assert found.evidence == pytest.approx(expected, abs=0.02)


def test_slopes_of_a_label_by_a_general_optimizer() -> None:
    data = entries(0.8, count=300)
    pooled = stacking.fit_pooled(data, LABELS)
    found = stacking.fit_per_label(data, pooled, 5.0)
    for j in range(LABELS):
        own = data[data.label == j]

        def objective(theta: np.ndarray, own: Entries = own) -> float:
            z = own.inputs @ theta[:3] + theta[3]
            loss = own.weight @ (np.logaddexp(0, z) - own.target * z)
            prior = 2.5 * np.square(theta[:3] - pooled.pooled).sum()
            return float(loss + prior + stacking.BIAS_PRECISION / 2 * (theta[3] - pooled.bias.mean()) ** 2)

        best = minimize(objective, np.zeros(4), method="BFGS", options={"gtol": 1e-6})
        np.testing.assert_allclose([*found.slopes[:, j], found.bias[j]], best.x, atol=1e-3)


def test_a_label_without_entries_has_the_pooled_slopes() -> None:
    found = stacking.fit(entries(0.8), LABELS, 1)
    np.testing.assert_allclose(found.slopes[:, -1], found.pooled, atol=1e-9)


def test_a_good_teacher_counts_and_a_useless_one_does_not() -> None:
    good = stacking.fit(entries(0.8), LABELS, 1)
    assert good.teachers == (0,)
    assert good.pooled[1:].sum() > 0.6
    for seed in range(5):
        useless = stacking.fit(entries(0.0, seed=seed), LABELS, 1)
        assert useless.teachers == ()
        np.testing.assert_array_equal(useless.slopes, np.tile([[1.0], [0.0], [0.0]], LABELS))
        np.testing.assert_array_equal(useless.bias, 0)


def test_a_teacher_that_is_always_wrong_is_left_out() -> None:
    assert stacking.fit(entries(-0.8), LABELS, 1).teachers == ()


def test_the_useless_one_of_two_teachers_is_left_out() -> None:
    """By chance a useless one may seem of use in one case of ten; its weight stays small then."""
    left_out = 0
    for seed in range(8):
        data = entries(0.8, seed=seed)
        noise = np.random.default_rng(seed + 1).normal(size=(len(data), 2))
        both = Entries(data.label, data.item, np.c_[data.inputs, noise], data.target, data.weight)
        found = stacking.fit(both, LABELS, 2)
        assert 0 in found.teachers
        assert found.pooled[3:].sum() < 0.15
        left_out += found.teachers == (0,)
    assert left_out >= 5


def test_two_equal_teachers_share_the_weight_of_one() -> None:
    data = entries(0.8)
    twice = Entries(data.label, data.item, np.c_[data.inputs, data.inputs[:, 1:]], data.target, data.weight)
    one, two = stacking.fit(data, LABELS, 1), stacking.fit(twice, LABELS, 2)
    if len(two.teachers) == 2:
        np.testing.assert_allclose(two.pooled[1:3], two.pooled[3:5], atol=1e-6)
    assert two.pooled[1:].sum() == pytest.approx(one.pooled[1:].sum(), abs=0.1)


def test_without_known_entries_the_teacher_is_trusted() -> None:
    nothing = entries(0.8)[np.zeros(1500, bool)]
    found = stacking.fit(nothing, LABELS, 1)
    assert found.teachers == (0,)
    np.testing.assert_allclose(found.pooled, [stacking.MODEL_SLOPE, stacking.LABEL_SLOPE, stacking.ITEM_SLOPE])


def test_weights_count_by_their_ratios_only() -> None:
    data = entries(0.8, count=300)
    scaled = Entries(data.label, data.item, data.inputs, data.target, 7 * data.weight)
    np.testing.assert_allclose(stacking.fit(data, LABELS, 1).slopes, stacking.fit(scaled, LABELS, 1).slopes, rtol=1e-6)


def test_labels_of_their_own_kind_get_slopes_of_their_own() -> None:
    """Half of the labels follow the teacher and half do not: slopes per label win by held-out loss."""
    rng = np.random.default_rng(0)
    count = 4000
    inputs, label = rng.normal(size=(count, 3)), np.sort(rng.integers(0, LABELS, count))
    logits = inputs[:, 0] + np.where(label < 3, 2.0, 0.0) * inputs[:, 2] - 1
    target = (rng.random(count) < 1 / (1 + np.exp(-logits))).astype(float)
    found = stacking.fit(Entries(label, rng.integers(0, 900, count), inputs, target, np.ones(count)), LABELS, 1)
    assert np.isfinite(found.precision)
    teacher = found.slopes[1:].sum(axis=0)
    assert teacher[:3].min() > 1.4
    assert teacher[3:].max() < 0.5


def test_a_fit_on_few_entries_is_averaged_with_the_model_alone() -> None:
    """Bayesian model averaging, written out from the evidence of both."""
    data = entries(0.3, count=60, seed=3)
    found = stacking.fit(data, LABELS, 1)
    weights = replace(data, weight=data.weight / data.weight.mean())
    both = stacking.fit_pooled(weights, LABELS)
    alone = stacking.fit_pooled(weights.with_inputs([0]), LABELS)
    odds = np.exp(both.evidence - alone.evidence + stacking.PRIOR_LOG_ODDS)
    assert found.posterior == pytest.approx(odds / (1 + odds))
    assert 0.5 < found.posterior < 0.999
    expected = found.posterior * both.pooled + (1 - found.posterior) * np.array([1.0, 0, 0])
    np.testing.assert_allclose(found.pooled, expected, atol=1e-9)
    assert stacking.fit(entries(0.8), LABELS, 1).posterior > 0.999
