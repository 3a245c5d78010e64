"""Fits of many items against scikit-learn on the known entries of each label, and against features held in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import partly
from partly.distributed import threads
from partly.methods import auto
from partly.solvers import folds, many_items, solved_readout
from partly.solvers.many_items import FeatureBlocks, ManyItems
from solvers.by_hand import calibrated, regression

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]


def problem(share: float = 0.3, items: int = 240, width: int = 6, labels: int = 5, noise: float = 1.0) -> Problem:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(items, width)) * np.logspace(0, 0.7, width)).astype(np.float32)
    x -= x.mean(axis=0)
    logits = rng.normal(size=(labels, width)) @ x.T
    targets = (logits / logits.std() + noise * rng.normal(size=logits.shape) > 0.3).astype(np.float32)
    return x, (rng.random(targets.shape) < share).astype(np.float32), targets


@pytest.fixture(autouse=True)
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOLERANCE", "SEARCH_TOLERANCE"):
        monkeypatch.setattr(many_items, name, 1e-8)


@pytest.mark.parametrize("share", [0.3, 0.9], ids=["each label on its own items", "all labels together"])
@pytest.mark.parametrize("read", [np.asarray, sp.csr_array, lambda x: FeatureBlocks(*x.shape, lambda rows: x[rows])])
def test_each_fit_is_the_minimum(share: float, read: Callable[[np.ndarray], Any]) -> None:
    x, weights, targets = problem(share)
    fold = folds.assign_folds(len(x), 0)
    w, b, held_out = ManyItems(read(x), weights, targets, fold).fit(0.05)
    for j in range(len(targets)):
        expected, bias = regression(x, weights[j], targets[j], 0.05)
        np.testing.assert_allclose(x @ w[j] + b[j], x @ expected + bias, atol=0.02 * np.abs(x @ expected).max())
        for k in range(5):
            expected, _ = regression(x, weights[j] * (fold != k), targets[j], 0.05)
            own = x[fold == k] @ expected
            np.testing.assert_allclose(held_out[j, fold == k], own, atol=0.03 * np.abs(own).max())


def test_labels_with_the_same_items_are_solved_together() -> None:
    weights = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1], [1, 0, 0, 0, 0, 0]], np.float32)
    x, fold = np.ones((6, 2), np.float32), np.arange(6) % 2
    jobs = ManyItems(x, weights, weights, fold).jobs
    assert [(job.labels.tolist(), job.items.tolist()) for job in jobs] == [([0, 2], [0]), ([1], [1, 2, 3, 4, 5])]
    most = ManyItems(x, np.array([[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0]], np.float32), weights[:2], fold).jobs
    assert [(job.labels.tolist(), job.items.tolist()) for job in most] == [([0, 1], [0, 1, 2])]


def test_the_chosen_strength_is_the_best_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "MANY_ITEMS", 1)
    x, weights, targets = problem(1.0, noise=3.0)
    fold = folds.assign_folds(len(x), 0)
    found = folds.solve(x, weights, targets, fold)
    square, losses = float((x**2).sum() / len(x)), {}
    for size in folds.GRID:
        scores = np.zeros(targets.shape)
        for k in range(5):
            for j in range(len(targets)):
                w, _ = regression(x, weights[j] * (fold != k), targets[j], size / square)
                scores[j, fold == k] = x[fold == k] @ w
        losses[size / square] = calibrated(scores, weights, targets)[0]
    best = min(losses, key=losses.__getitem__)
    assert found.c == pytest.approx(best, rel=1e-4)
    assert found.loss == pytest.approx(losses[best], rel=1e-3)


def test_more_entries_can_ask_for_less_regularization(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of a dozen items favors a strong penalty; all entries correct that."""
    monkeypatch.setattr(folds, "MANY_ITEMS", 1)
    x, weights, targets = problem(1.0, items=600, noise=0.3)
    fold = folds.assign_folds(len(x), 0)
    everything = folds.solve(x, weights, targets, fold)
    for name, value in {"MIN_ENTRIES": 12, "ENTRIES_PER_FEATURE": 0, "SEARCHED_ENTRIES": 1}.items():
        monkeypatch.setattr(many_items, name, value)
    sampled = ManyItems(x, weights, targets, fold)
    assert sampled.leaves_out_entries
    c = sampled.search([size / sampled.square for size in folds.GRID], folds.PATIENCE)
    found = folds.solve(x, weights, targets, fold)
    assert c < found.c
    assert found.loss == pytest.approx(everything.loss, rel=0.02)


def test_hidden_targets_and_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folds, "MANY_ITEMS", 1)
    x, weights, targets = problem()
    fold = folds.assign_folds(len(x), 0)
    first = folds.solve(x, weights, targets, fold)
    monkeypatch.setattr(threads, "workers", lambda: 3)
    other = folds.solve(x, weights, np.where(weights == 0, 1 - targets, targets), fold)
    assert (first.w == other.w).all()
    assert (first.held_out == other.held_out).all()
    assert (first.loss, first.c) == (other.loss, other.c)


def test_a_fold_does_not_learn_from_its_own_labels() -> None:
    x, weights, targets = problem()
    fold = folds.assign_folds(len(x), 0)
    own = fold == 2
    before, after = (
        ManyItems(x, weights, t, fold).fit(0.05)[2] for t in (targets, np.where(own, 1 - targets, targets))
    )
    np.testing.assert_allclose(after[:, own], before[:, own], atol=0.01 * np.abs(before).max())
    assert np.abs(after[:, ~own] - before[:, ~own]).max() > 0.1 * np.abs(before).max()


def test_labels_without_both_values_get_no_weights() -> None:
    x, weights, targets = problem()
    weights[1], targets[2] = 0, 1
    w, b, held_out = ManyItems(x, weights, targets, folds.assign_folds(len(x), 0)).fit(0.05)
    assert not w[1:3].any()
    assert w[0].any()
    assert np.isfinite(b).all()
    assert np.isfinite(held_out).all()
    nothing = folds._solve_many(ManyItems(x, 0 * weights, targets, folds.assign_folds(len(x), 0)), None)
    assert np.isfinite(nothing.b).all()


@pytest.mark.parametrize("method", ["auto", "bce"])
def test_features_that_do_not_fit_are_read_in_blocks(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linear parts are those of features in memory, and kernel machines learn from a sample: nearly as good."""
    for module in (folds, solved_readout, auto):
        monkeypatch.setattr(module, "MANY_ITEMS", 1)
    x, weights, targets = problem(0.5, items=400, labels=3, noise=0.5)
    z = np.where(weights > 0, targets, np.nan).T
    kwargs: dict[str, Any] = {"head_settings": {"axes": 30, "landmarks": 40}} if method == "bce" else {}
    scores, truth = [], partly.Labels.from_full(targets.T > 0)
    for numbers in (1 << 26, 400 * 5):
        for module in (folds, many_items, solved_readout):
            monkeypatch.setattr(module, "MAX_NUMBERS", numbers)
        monkeypatch.setattr(auto, "MAX_FOREST_ITEMS", min(numbers, 150))
        head = "auto" if method == "auto" else "kernel"
        model = partly.Classifier(method, head=head, progress=False, **kwargs).fit(x, z)
        scores.append(np.nanmean(partly.metrics.average_precision(model.predict_proba(x), truth)))
    assert scores[1] > scores[0] - 0.03
