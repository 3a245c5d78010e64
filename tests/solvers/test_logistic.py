"""The solved linear head against scikit-learn and against its own optimality conditions, worked out in float64."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from partly.solvers.logistic import (
    label_rows,
    log_odds,
    principal_axes,
    regularization_path,
    regularization_path_by_label,
)


def problem(seed: int, items: int = 60, width: int = 7, labels: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, weights (a third of them 0) and hard targets."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(items, width)) * np.logspace(0, 1, width)).astype(np.float32)
    targets = (rng.normal(size=(labels, width)) @ x.T + rng.normal(size=(labels, items)) > 0.5).astype(np.float32)
    weights = np.where(rng.random(targets.shape) < 0.33, 0, rng.uniform(0.2, 3, targets.shape)).astype(np.float32)
    return x, weights, targets


def solved(x: object, weights: np.ndarray, targets: np.ndarray, strengths: list[float]) -> list[tuple]:
    z = principal_axes(x)
    return [z.to_original(w, b) for w, b in regularization_path(z, weights, targets, strengths)]


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
    monkeypatch.setattr("partly.solvers.logistic.BLOCK", len(x))  # one label at a time
    ((alone, bias),) = solved(x, weights, targets, [0.1])
    np.testing.assert_allclose(x @ alone.T + bias, x @ w.T + b, atol=0.05)


# -------------------------------------------------------------------- logits to which scores are added


def test_an_offset_keeps_its_bias() -> None:
    """The scores are added to given logits; nothing is added to all items alike."""
    x, weights, targets = problem(7)
    offset = np.random.default_rng(0).normal(size=targets.shape).astype(np.float32) + np.float32(1.5)
    given_ = offset.copy()
    strengths = [0.001, 0.1]
    z = principal_axes(x)
    for c, (w, b) in zip(strengths, regularization_path(z, weights, targets, strengths, offset), strict=True):
        assert not b.any()
        w = z.to_original(w, b)[0].astype(float)
        for j in range(len(weights)):
            left, first = (
                weights[j] * (1 / (1 + np.exp(-(f.astype(float) + offset[j]))) - targets[j])
                for f in (x @ w[j], 0 * x[:, 0])
            )
            slope, start = left @ x + w[j] / c, first @ x
            assert np.abs(slope).max() <= 0.02 * np.abs(start).max()
    assert (offset == given_).all()


def test_an_offset_that_says_it_all_needs_nothing_more() -> None:
    """From the minimum without an offset, taken as one, there is nowhere to go but towards less regularisation."""
    x, weights, targets = problem(8)
    z = principal_axes(x)
    ((w, b),) = regularization_path(z, weights, targets, [1000.0])
    offset = z.times(w) + b[:, None]
    ((more, _),) = regularization_path(z, weights, targets, [1e-4], offset)
    ((fresh, _),) = regularization_path(z, weights, targets, [1e-4], np.zeros_like(offset))
    assert np.abs(z.times(more)).max() < 0.05 * np.abs(z.times(fresh)).max()


# -------------------------------------------------------------------- each label on its own rows


@pytest.mark.parametrize("width", [7, 90])
def test_label_by_label_is_the_same_minimum(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partly.solvers.logistic.TOLERANCE", 1e-9)
    x, weights, targets = problem(9, width=width)
    weights *= np.random.default_rng(1).random(weights.shape) < 0.5
    seen = np.stack([np.ones(60, bool), np.arange(60) % 3 != 0, np.arange(60) % 3 != 1])
    strengths = [0.001, 0.03]
    together = solved(x, np.concatenate([weights * part for part in seen]), np.tile(targets, (3, 1)), strengths)
    by_label = regularization_path_by_label(label_rows(x, weights), weights, targets, seen, strengths)
    for (w, b), (one, bias) in zip(together, by_label, strict=True):
        assert one.shape == w.shape == (12, width)
        expected = x @ w.T + b
        np.testing.assert_allclose(x @ one.T + bias, expected, atol=0.01 * np.abs(expected).max())


def test_a_label_of_which_nothing_is_known_by_itself() -> None:
    x, weights, targets = problem(10)
    weights[1], targets[2] = 0, 1
    ((w, b),) = regularization_path_by_label(label_rows(x, weights), weights, targets, np.ones((1, 60), bool), [0.1])
    assert not w[1:3].any()
    assert w[0].any()
    assert np.isfinite(b).all()


# -------------------------------------------------------------------- wide features


@pytest.mark.parametrize("shape", [(30, 200), (200, 30), (5, 5), (1, 9)])
def test_axes_are_a_way_of_looking_and_nothing_else(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """PrincipalAxes into principal axes, or as they are: the same minimum; and the axes rebuild the features."""
    monkeypatch.setattr("partly.solvers.logistic.TOLERANCE", 1e-9)
    x, weights, targets = problem(11, items=shape[0], width=shape[1])
    x -= x.mean(axis=0)
    z = principal_axes(x)
    assert z.x.shape[1] <= min(shape)
    axes = np.linalg.multi_dot(z.axes) if len(z.axes) > 1 else z.axes[0]
    np.testing.assert_allclose(z.x @ axes.T, x, atol=5e-3 * max(1, np.abs(x).max()))
    np.testing.assert_allclose(z.squares, (z.x.astype(float) ** 2).mean(axis=0), rtol=1e-2, atol=1e-6)
    ((w, b),) = solved(x, weights, targets, [0.01])
    monkeypatch.setattr("partly.solvers.logistic.MAX_ROTATED", 0)
    assert principal_axes(x).axes == ()
    ((plain, bias),) = solved(x, weights, targets, [0.01])
    expected = x @ plain.T + bias
    np.testing.assert_allclose(x @ w.T + b, expected, atol=0.01 * max(1, np.abs(expected).max()))


def test_columns_of_zeros_change_nothing() -> None:
    x, weights, targets = problem(12)
    ((w, b),) = solved(x, weights, targets, [0.1])
    more = np.column_stack([x, np.zeros((60, 2))]).astype(np.float32)
    ((other, bias),) = solved(more, weights, targets, [0.1])
    expected = x @ w.T + b
    np.testing.assert_allclose(more @ other.T + bias, expected, atol=0.02 * np.abs(expected).max())
    assert not other[:, 7:].any()
