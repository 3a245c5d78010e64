"""The strength that folds choose, against plain loops over scikit-learn's fits."""

from __future__ import annotations

import numpy as np
import pytest

from partly.solvers import folds, logistic
from solvers.by_hand import calibrated, regression


def problem(
    seed: int = 0, items: int = 90, noise: float = 1.0, width: int = 6, share: float = 0.6
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items, width)).astype(np.float32)
    x -= x.mean(axis=0)
    targets = (rng.normal(size=(3, width)) @ x.T + noise * rng.normal(size=(3, items)) > 0.5).astype(np.float32)
    return x, (rng.random(targets.shape) < share).astype(np.float32), targets


def test_the_folds_are_a_function_of_number_and_seed() -> None:
    for items, count in ((1, 1), (3, 3), (50, 5), (1999, 5), (2000, 3)):
        fold = folds.assign_folds(items, 7)
        sizes = np.bincount(fold)
        assert len(sizes) == count
        assert sizes.max() - sizes.min() <= 1
        assert (fold == folds.assign_folds(items, 7)).all()
    assert (folds.assign_folds(50, 7) != folds.assign_folds(50, 8)).any()


@pytest.mark.parametrize(("width", "share"), [(6, 0.6), (70, 0.3)], ids=["all labels together", "label by label"])
def test_against_a_loop_over_folds_and_strengths(width: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-8)  # else fits end where folds can no longer tell strengths apart
    x, weights, targets = problem(width=width, share=share)
    fold = folds.assign_folds(len(x), 0)
    found = folds.solve(x, weights, targets, fold)
    square, worth, held_out = float((x**2).sum() / len(x)), {}, {}
    for size in folds.GRID:
        c = size / square
        scores = np.zeros(targets.shape)
        for k in range(5):
            for j in range(len(targets)):
                w, _ = regression(x, weights[j] * (fold != k), targets[j], c)
                scores[j, fold == k] = x[fold == k] @ w
        worth[c], held_out[c] = calibrated(scores, weights, targets)[0], scores
    best = min(worth, key=worth.__getitem__)
    assert found.c == pytest.approx(best, rel=1e-4)
    assert found.loss == pytest.approx(worth[best], rel=1e-3)
    np.testing.assert_allclose(found.held_out, held_out[best], atol=0.03 * np.abs(held_out[best]).max())
    for j in range(len(targets)):
        w, b = regression(x, weights[j], targets[j], best)
        np.testing.assert_allclose(x @ found.w[j] + found.b[j], x @ w + b, atol=0.03 * np.abs(x @ w + b).max())


@pytest.mark.parametrize(("width", "share"), [(6, 0.6), (70, 0.3)], ids=["all labels together", "label by label"])
def test_nobody_scores_an_entry_that_he_has_seen(width: int, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a given strength the scores of an item are none of its own labels' business, and of its fold's."""
    monkeypatch.setattr(folds, "GRID", (1.0,))
    x, weights, targets = problem(width=width, share=share)
    fold = folds.assign_folds(len(x), 0)
    own, others = fold == 2, fold != 2
    before = folds.solve(x, weights, targets, fold).held_out
    after = folds.solve(x, weights, np.where(own, 1 - targets, targets), fold).held_out
    scale = np.abs(before).max()
    np.testing.assert_allclose(after[:, own], before[:, own], atol=0.01 * scale)
    assert (np.abs(after[:, others] - before[:, others]).max(axis=1) > 0.1 * scale).all()


def test_what_hides_under_an_unknown_entry_changes_no_bit() -> None:
    x, weights, targets = problem()
    fold = folds.assign_folds(len(x), 0)
    one, other = (folds.solve(x, weights, t, fold) for t in (targets, np.where(weights == 0, 1 - targets, targets)))
    assert (one.w == other.w).all()
    assert (one.held_out == other.held_out).all()
    assert (one.loss, one.c) == (other.loss, other.c)


def test_noise_asks_for_more_strength() -> None:
    weak, strong = (folds.solve(*problem(noise=n), folds.assign_folds(90, 0)).c for n in (0.1, 30.0))
    assert weak > strong


def test_with_only_yes_each_label_of_the_rest_counts_as_no() -> None:
    """Scores that tell known yes from the rest are worth the same whatever their scale: the loss is the calibrated
    one."""
    x, _, targets = problem(noise=0.1)
    known = targets * (np.random.default_rng(1).random(targets.shape) < 0.5)
    ones = np.ones_like(targets)
    found = folds.solve(x, ones, known.astype(np.float32), folds.assign_folds(len(x), 0))
    constant = calibrated(np.zeros_like(known), ones, known)[0]
    assert found.loss == pytest.approx(calibrated(7 * found.held_out, ones, known)[0], rel=1e-4)
    assert found.loss < 0.9 * constant
    assert found.held_out[targets > 0].mean() > found.held_out[targets == 0].mean() + 0.5


def test_little_is_enough() -> None:
    """One item, one label, nothing known: a defined result."""
    for items, labels in ((1, 1), (2, 3)):
        nothing = np.zeros((labels, items), np.float32)
        found = folds.solve(np.ones((items, 2), np.float32), nothing, nothing, folds.assign_folds(items, 0))
        for part in (found.w, found.b, found.held_out, found.c, found.loss):
            assert np.isfinite(part).all()
        assert found.held_out.shape == (labels, items)
