"""The strength that folds choose, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss, roc_auc_score

from partly.solving import folds
from partly.solving.logistic import log_odds, path, turned


def problem(seed: int = 0, items: int = 90, noise: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items, 6)).astype(np.float32)
    targets = (rng.normal(size=(3, 6)) @ x.T + noise * rng.normal(size=(3, items)) > 0.5).astype(np.float32)
    return x, (rng.random(targets.shape) < 0.6).astype(np.float32), targets


def test_the_folds_are_a_function_of_number_and_seed() -> None:
    for items, count in ((1, 1), (3, 3), (50, 5), (1999, 5), (2000, 3)):
        fold = folds.fold_of(items, 7)
        sizes = np.bincount(fold)
        assert len(sizes) == count
        assert sizes.max() - sizes.min() <= 1
        assert (fold == folds.fold_of(items, 7)).all()
    assert (folds.fold_of(50, 7) != folds.fold_of(50, 8)).any()


def test_against_a_loop_over_folds_and_strengths() -> None:
    x, weights, targets = problem()
    fold = folds.fold_of(len(x), 0)
    found = folds.solve(x, weights, targets, fold, only_yes=False)
    z = turned(x)
    bias = log_odds(weights, targets)[:, None]
    worth = {}
    for size in folds.GRID:
        c = size / z.squares.sum()
        scores = np.empty(targets.shape)
        for k in range(5):
            ((w, _),) = path(z, weights * (fold != k), targets, [c])
            scores[:, fold == k] = w @ z.x[fold == k].T
        known = weights > 0
        p = 1 / (1 + np.exp(-(scores + bias)))
        worth[c] = log_loss(targets[known], p[known])
    assert found.strength == pytest.approx(min(worth, key=worth.get))
    assert found.loss == pytest.approx(min(worth.values()), rel=1e-3)
    ((w, b),) = path(z, weights, targets, [found.strength])
    np.testing.assert_allclose(found.w, w @ z.axes.T, atol=1e-5)
    np.testing.assert_allclose(found.b, b, atol=1e-5)


def test_noise_asks_for_more_strength() -> None:
    weak, strong = (folds.solve(*problem(noise=n), folds.fold_of(90, 0), False).strength for n in (0.1, 30.0))
    assert weak > strong


@given(seed=st.integers(0, 10**6))
def test_auc_against_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    yes, scores = rng.random(20) < 0.3, rng.integers(0, 6, 20).astype(np.float32)
    if yes.any() and not yes.all():
        assert folds.auc(scores, yes) == pytest.approx(roc_auc_score(yes, scores))
    else:
        assert np.isnan(folds.auc(scores, yes))


def test_with_only_yes_the_order_decides() -> None:
    scores = np.array([[3, 2, 1, 0], [0, 0, 0, 0], [1, 2, 3, 4]], np.float32)
    targets = np.array([[1, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]], np.float32)
    ones = np.ones_like(targets)
    assert folds.criterion(scores, ones, targets, only_yes=True) == pytest.approx(1 - (0.75 + 1) / 2)
    assert folds.criterion(5 * scores, ones, targets, only_yes=True) == pytest.approx(1 - (0.75 + 1) / 2)
    assert folds.criterion(scores, ones, 0 * targets, only_yes=True) == 0.5


def test_little_is_enough() -> None:
    """One item, one label, nothing known: a defined result."""
    for items, labels in ((1, 1), (2, 3)):
        nothing = np.zeros((labels, items), np.float32)
        found = folds.solve(np.ones((items, 2), np.float32), nothing, nothing, folds.fold_of(items, 0), only_yes=False)
        assert np.isfinite(found.w).all()
        assert np.isfinite(found.b).all()
