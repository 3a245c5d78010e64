"""Recalibration: the same minimum as a plain optimizer finds, and what happens at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from partly import Labels
from partly.model_choice import criteria, recalibration
from partly.model_choice.recalibration import recalibrate, standardize

Array = np.ndarray[Any, Any]


def made(labels: int = 4, items: int = 200) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(0)
    targets = (rng.random((labels, items)) < 0.2).astype(np.float64)
    scores = standardize(rng.normal(size=targets.shape) + 1.5 * targets)
    weights = np.where(rng.random(targets.shape) < 0.6, rng.uniform(0.5, 2, targets.shape), 0)
    return scores.astype(np.float64), weights, targets


def slow(scores: Array, weights: Array, targets: Array) -> tuple[float, float, Array]:
    """The objective as it is said, given to an optimizer without derivatives of ours."""
    pooled = ((weights * targets).sum() + 0.5) / (weights.sum() + 1)

    def losses(x: Array) -> Array:
        f = x[0] * scores + x[1:, None]
        return weights * (np.logaddexp(0, f) - targets * f)

    def objective(x: Array) -> float:
        return float(losses(x).sum() + (np.logaddexp(0, x[1:]) - pooled * x[1:]).sum())

    start = np.concatenate([[1.0], np.full(len(scores), -1.0)])
    bounds = [(0, recalibration.MAX_SCALE), *[(None, None)] * len(scores)]
    x = minimize(objective, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-8}).x
    return float(losses(x).sum() / weights.sum()), float(x[0]), x[1:]


@pytest.mark.parametrize("chunk", [1 << 15, 100])
@pytest.mark.parametrize("kind", ["weighted", "all", "known", "soft"])
def test_the_minimum_is_that_of_a_plain_optimizer(kind: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recalibration, "ENTRIES_PER_CHUNK", chunk)
    scores, weights, targets = made()
    if kind in ("all", "known"):
        weights = np.ones_like(weights) if kind == "all" else (weights > 0).astype(float)
    if kind == "soft":
        targets = 0.1 + 0.8 * targets
    loss, scale, biases = recalibrate(scores, weights, targets)
    expected = slow(scores, weights, targets)
    assert loss == pytest.approx(expected[0], rel=1e-5)
    assert scale == pytest.approx(expected[1], rel=1e-2)
    assert biases == pytest.approx(expected[2], abs=1e-2)


def test_scores_that_point_the_wrong_way_are_worth_nothing() -> None:
    scores, weights, targets = made()
    loss, scale, biases = recalibrate(-scores, weights, targets)
    assert scale == 0
    pooled = ((weights * targets).sum() + 0.5) / (weights.sum() + 1)
    share = ((weights * targets).sum(axis=1) + pooled) / (weights.sum(axis=1) + 1)
    assert biases == pytest.approx(np.log(share / (1 - share)), rel=1e-6)
    p = share[:, None]
    expected = -(weights * (targets * np.log(p) + (1 - targets) * np.log(1 - p))).sum() / weights.sum()
    assert loss == pytest.approx(expected, rel=1e-5)


def test_a_label_of_which_nothing_is_known_has_the_share_of_all() -> None:
    scores, weights, targets = made()
    weights[[0, 2]] = 0
    others = recalibrate(scores[[1, 3]], weights[[1, 3]], targets[[1, 3]])
    loss, scale, biases = recalibrate(scores, weights, targets)
    assert (loss, scale) == pytest.approx(others[:2], rel=1e-5)
    pooled = ((weights * targets).sum() + 0.5) / (weights.sum() + 1)
    assert biases[[0, 2]] == pytest.approx(np.log(pooled / (1 - pooled)))


@pytest.mark.parametrize("count", [1, 30])
def test_what_can_be_told_apart_wholly_has_a_finite_scale(count: int) -> None:
    scores = standardize(np.add(np.tile(np.repeat([0.0, 1.0], count), (2, 1)), [[0], [5]]))
    loss, scale, biases = recalibrate(scores, np.ones(scores.shape), (scores > 0).astype(float))
    assert 1 < scale <= recalibration.MAX_SCALE
    assert loss < 0.05
    assert np.isfinite(biases).all()


def test_nothing_to_judge() -> None:
    for weights, targets in ((np.zeros((2, 3)), np.zeros((2, 3))), (np.ones((2, 3)), np.ones((2, 3)))):
        loss, scale, biases = recalibrate(np.ones((2, 3)), weights, targets)
        assert scale == 0
        assert np.isfinite([loss, *biases]).all()


def test_standardised_by_hand() -> None:
    found = standardize(np.array([[1.0, 2, 3], [4, 4, 4], [1e8, 1e8 + 2, 1e8 + 4]]))
    assert found == pytest.approx(np.array([[-1.2247, 0, 1.2247], [0, 0, 0], [-1.2247, 0, 1.2247]]), abs=1e-3)


@pytest.mark.parametrize("only_yes", [False, True])
def test_the_criterion_is_the_share_that_is_explained(only_yes: bool) -> None:
    rng = np.random.default_rng(1)
    z = rng.choice([1, 0] if only_yes else [1, 0, -1], (80, 3), p=[0.2, 0.8] if only_yes else [0.1, 0.6, 0.3])
    s = rng.normal(size=z.shape) + z
    weights = np.ones(z.shape) if only_yes else (z != 0).astype(float)
    scores = standardize(s.T).astype(np.float64)
    loss, nothing = (slow(x, weights.T, (z == 1).astype(float).T)[0] for x in (scores, 0 * scores))
    assert criteria.log_loss(s, Labels.from_ternary(z)) == pytest.approx(1 - loss / nothing, abs=1e-4)
