"""What labels say of each other: found where it is there, not where it is not; and by plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from partly.solvers import logistic, relations
from partly.solvers.calibration import calibrate
from partly.solvers.folds import assign_folds
from partly.solvers.relations import APPLIED, MIN_LABELS_PER_ITEM, PARTS, compete, relate

Problem = tuple[np.ndarray, np.ndarray, np.ndarray]


def follows(seed: int = 0, items: int = 300) -> Problem:
    """The first label's scores are good, the second follows the first but has scores of noise, the third is by
    itself."""
    rng = np.random.default_rng(seed)
    first, third = rng.random((2, items)) < 0.4
    truth = np.stack([first, first ^ (rng.random(items) < 0.05), third])
    scores = rng.normal(size=truth.shape)
    scores[[0, 2]] += 2 * truth[[0, 2]]
    return settled(scores, truth, rng)


def independent(seed: int = 0, items: int = 300) -> Problem:
    rng = np.random.default_rng(seed)
    truth = rng.random((4, items)) < 0.4
    return settled(rng.normal(size=truth.shape) + 1.5 * truth, truth, rng)


def settled(scores: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> Problem:
    weights = (rng.random(truth.shape) < 0.7).astype(np.float32)
    scores, targets = scores.astype(np.float32), truth.astype(np.float32)
    return calibrate(scores, weights, targets)(scores), weights, targets


def test_a_label_that_follows_another_is_found() -> None:
    logits, weights, targets = follows()
    found = relate(logits, weights, targets, assign_folds(logits.shape[1], 0))
    before = calibrate(logits, weights, targets).loss
    assert found.c > 0
    assert found.loss < 0.9 * before
    assert found.matrix[0, 1] > 0.3
    assert found.matrix[0, 1] > 5 * np.abs(found.matrix[[0, 1, 2, 2], [2, 2, 0, 1]]).max()
    # On items that it has not seen, as the model applies it:
    new, every, truth = follows(seed=1)
    related = new + ((new - found.mean[:, None]).T @ found.matrix).T
    hidden = np.where(every == 0, 1, 0).astype(np.float32)
    assert calibrate(related, hidden, truth).loss < 0.9 * calibrate(new, hidden, truth).loss


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_found_between_independent_labels(seed: int) -> None:
    logits, weights, targets = independent(seed, items=1000)
    found = relate(logits, weights, targets, assign_folds(logits.shape[1], 0))
    before = calibrate(logits, weights, targets).loss
    assert before * 0.99 < found.loss <= before
    apart = found.matrix[~np.eye(4, dtype=bool)]
    assert np.abs(apart).max() < 0.1
    if not found.c:
        assert not found.matrix.any()
        assert (found.held_out == logits).all()


def test_one_label_has_nobody_to_ask() -> None:
    logits, weights, targets = (part[:1] for part in follows())
    found = relate(logits, weights, targets, assign_folds(logits.shape[1], 0))
    assert found.c == 0
    assert found.matrix.tolist() == [[0]]
    assert (found.held_out == logits).all()


def test_no_label_varies() -> None:
    logits = np.full((2, 10), 0.5, np.float32)
    found = relate(logits, np.ones_like(logits), np.zeros_like(logits), assign_folds(10, 0))
    assert np.isfinite(found.matrix).all()
    assert np.isfinite(found.held_out).all()


def by_hand(x: np.ndarray, offset: np.ndarray, weights: np.ndarray, target: np.ndarray, c: float) -> np.ndarray:
    """A logistic regression that adds to given logits, without a bias of its own."""

    def objective(w: np.ndarray) -> float:
        f = x @ w + offset
        return float((weights * (np.logaddexp(0, f) - target * f)).sum() + (w**2).sum() / (2 * c))

    return minimize(objective, np.zeros(x.shape[1]), method="BFGS", options={"gtol": 1e-6}).x


def test_against_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-9)
    logits, weights, targets = follows(items=90)
    fold = assign_folds(90, 0)
    found = relate(logits, weights, targets, fold)
    assert found.c > 0
    x = ((logits - logits.mean(axis=1, keepdims=True)) / logits.std(axis=1, keepdims=True)).T.astype(float)
    held_out, matrix = logits.astype(float), np.zeros((3, 3))
    for j in range(3):
        for k in range(5):
            w = by_hand(x, logits[j], weights[j] * (fold != k), targets[j], found.c)
            held_out[j, fold == k] += APPLIED * x[fold == k] @ w
        w = by_hand(x, logits[j], weights[j], targets[j], found.c)
        matrix[:, j] = APPLIED * w / logits.std(axis=1)
    np.testing.assert_allclose(found.held_out, held_out, atol=0.02)
    np.testing.assert_allclose(found.matrix, matrix, atol=0.01)
    np.testing.assert_allclose(found.mean, logits.mean(axis=1), rtol=1e-5)
    assert found.loss == pytest.approx(calibrate(held_out.astype(np.float32), weights, targets).loss, rel=1e-3)


def test_no_strength_that_was_tried_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, weights, targets = follows()
    fold = assign_folds(logits.shape[1], 0)
    found = relate(logits, weights, targets, fold)
    for strength in relations.C_VALUES[: relations.C_VALUES.index(found.c) + 2]:
        monkeypatch.setattr(relations, "C_VALUES", (strength,))
        assert relate(logits, weights, targets, fold).loss >= found.loss * (1 - 1e-3)


def test_an_item_is_none_of_its_own_labels_business(monkeypatch: pytest.MonkeyPatch) -> None:
    """At a given strength, what is added to an item's logits does not come from its own labels."""
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-9)
    monkeypatch.setattr(relations, "C_VALUES", (0.01,))
    logits, weights, targets = follows()
    fold = assign_folds(logits.shape[1], 0)
    own = np.flatnonzero(fold == 1)[:1]
    changed = targets.copy()
    changed[:, own] = 1 - changed[:, own]
    one, other = (relate(logits, weights, t, fold) for t in (targets, changed))
    assert one.c == other.c == 0.01
    np.testing.assert_allclose(other.held_out[:, own], one.held_out[:, own], atol=1e-3)
    assert np.abs(other.held_out - one.held_out).max() > 0.005


def test_of_many_directions_the_longest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, weights, targets = follows()
    fold = assign_folds(logits.shape[1], 0)
    monkeypatch.setattr(relations, "DIRECTIONS", 2)
    found = relate(logits, weights, targets, fold)
    assert found.matrix.shape == (3, 3)
    assert np.linalg.matrix_rank(found.matrix, tol=1e-4) <= 2


def test_compete_against_a_loop() -> None:
    """Every item has one label, which scores that know nothing of each other do not say."""
    rng = np.random.default_rng(0)
    truth = np.eye(5)[rng.integers(0, 5, 200)].T
    logits, weights, targets = settled(rng.normal(size=truth.shape) + 2 * truth + rng.normal(size=200), truth, rng)
    part, found = compete(logits, weights, targets)
    tried = {}
    for one in PARTS:
        lowered = logits.astype(float)
        for i in range(logits.shape[1]):
            lowered[:, i] -= one * np.log((1 / (1 + np.exp(-logits[:, i].astype(float)))).sum() + MIN_LABELS_PER_ITEM)
        tried[one] = calibrate(lowered.astype(np.float32), weights, targets).loss, lowered
    assert part == min(tried, key=lambda one: tried[one][0]) > 0
    np.testing.assert_allclose(found, tried[part][1], atol=1e-4)


def test_labels_that_come_together_do_not_compete() -> None:
    rng = np.random.default_rng(1)
    truth = np.tile(rng.random(200) < 0.4, (4, 1))
    logits, weights, targets = settled(rng.normal(size=truth.shape) + 1.5 * truth, truth, rng)
    part, found = compete(logits, weights, targets)
    assert part == 0
    assert (found == logits).all()
