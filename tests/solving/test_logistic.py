"""The solved linear head against scikit-learn and against its own optimality conditions, worked out in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from partly.solving.logistic import log_odds, path, turned


def problem(seed: int, items: int = 60, width: int = 7, labels: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, weights (a third of them 0) and hard targets."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(items, width)) * np.logspace(0, 1, width)).astype(np.float32)
    targets = (rng.normal(size=(labels, width)) @ x.T + rng.normal(size=(labels, items)) > 0.5).astype(np.float32)
    weights = np.where(rng.random(targets.shape) < 0.33, 0, rng.uniform(0.2, 3, targets.shape)).astype(np.float32)
    return x, weights, targets


def solved(x: object, weights: np.ndarray, targets: np.ndarray, strengths: list[float]) -> list[tuple]:
    z = turned(x)
    return [z.undone(w, b) for w, b in path(z, weights, targets, strengths)]


def objective(x: np.ndarray, a: np.ndarray, t: np.ndarray, c: float, w: np.ndarray, b: float) -> float:
    f = x.astype(float) @ w.astype(float) + b
    return float((a * (np.logaddexp(0, f) - t * f)).sum() + (w.astype(float) ** 2).sum() / (2 * c))


@pytest.mark.parametrize("width", [7, 90])  # fewer and more features than items
def test_as_good_as_scikit_learn(width: int) -> None:
    x, weights, targets = problem(0, width=width)
    strengths = [0.01, 0.1, 1.0]
    for c, (w, b) in zip(strengths, solved(x, weights, targets, strengths), strict=True):
        for j in range(len(weights)):
            rows = weights[j] > 0
            other = LogisticRegression(C=c, tol=1e-8, max_iter=10_000)
            other.fit(x[rows], targets[j, rows], sample_weight=weights[j, rows])
            mine = objective(x, weights[j], targets[j], c, w[j], b[j])
            theirs = objective(x, weights[j], targets[j], c, other.coef_[0], other.intercept_[0])
            start = objective(x, weights[j], targets[j], c, 0 * w[j], log_odds(weights, targets)[j])
            assert mine <= theirs + 1e-4 * start
            expected = other.decision_function(x)
            if width > len(x):  # where the rows can be told apart, the minimum is flat: its depth is what counts
                continue
            np.testing.assert_allclose(x @ w[j] + b[j], expected, atol=0.03 * np.abs(expected).max())


@given(seed=st.integers(0, 10**6), soft=st.booleans(), c=st.sampled_from([1e-3, 0.03, 1.0]))
def test_the_slope_vanishes(seed: int, soft: bool, c: float) -> None:
    """At the minimum no direction goes down: measured against the slope at the start."""
    x, weights, targets = problem(seed)
    targets = targets * 0.8 + 0.1 if soft else targets
    ((w, b),) = solved(x, weights, targets, [c])
    for j in range(len(weights)):
        left = weights[j] * (1 / (1 + np.exp(-(x.astype(float) @ w[j] + b[j]))) - targets[j])
        first = weights[j] * (1 / (1 + np.exp(-log_odds(weights, targets)[j])) - targets[j])
        slope, start = (np.append(r @ x.astype(float) + v / c, r.sum()) for r, v in ((left, w[j]), (first, 0 * w[j])))
        assert np.abs(slope).max() <= 0.02 * max(np.abs(start).max(), 1e-3)


def test_a_path_ends_where_each_strength_alone_does() -> None:
    x, weights, targets = problem(3)
    along = solved(x, weights, targets, [0.01, 0.1, 1.0])
    for c, (w, b) in zip([0.01, 0.1, 1.0], along, strict=True):
        ((alone, bias),) = solved(x, weights, targets, [c])
        for j in range(len(weights)):
            here, there = (objective(x, weights[j], targets[j], c, *one) for one in ((w[j], b[j]), (alone[j], bias[j])))
            assert here == pytest.approx(there, rel=1e-3)


def test_sparse_features_give_the_same() -> None:
    x, weights, targets = problem(4)
    x[np.abs(x) < 1] = 0
    x += np.array([0, 9, 0, -50, 0, 0, 3], np.float32)  # what is not centred is as good
    mean = x.mean(axis=0)
    ((w, b),) = solved(x - mean, weights, targets, [0.1])
    ((sparse, bias),) = solved(sp.csr_array(x), weights, targets, [0.1])
    np.testing.assert_allclose(x @ sparse.T + bias, (x - mean) @ w.T + b, atol=0.2)


def test_what_says_all_the_same_has_no_weights() -> None:
    x, weights, targets = problem(5)
    targets[0], targets[1], weights[2] = 1, 0, 0
    ((w, b),) = solved(x, weights, targets, [1.0])
    assert not w[:3].any()
    assert w[3].any()
    np.testing.assert_array_equal(b[:3], log_odds(weights, targets)[:3])
    assert b[0] > 2 > -2 > b[1]


def test_log_odds_by_hand() -> None:
    """Three yes of four, and none of two: together 3.5 of 7; each label has one entry more of that share."""
    weights = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.float32)
    targets = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], np.float32)
    shares = np.array([(3 + 0.5) / 5, 0.5 / 3])
    np.testing.assert_allclose(log_odds(weights, targets), np.log(shares / (1 - shares)), rtol=1e-6)


def test_blocks_of_labels_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, weights, targets = problem(6)
    ((w, b),) = solved(x, weights, targets, [0.1])
    monkeypatch.setattr("partly.solving.logistic.BLOCK", len(x))  # one label at a time
    ((alone, bias),) = solved(x, weights, targets, [0.1])
    np.testing.assert_allclose(x @ alone.T + bias, x @ w.T + b, atol=0.05)
