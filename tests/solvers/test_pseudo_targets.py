"""What is believed of unknown entries: by whom, and from what."""

from __future__ import annotations

import numpy as np
import pytest

from partly.solvers import logistic
from partly.solvers.pseudo_targets import combine_targets, estimate_targets
from solvers.by_hand import calibrated, regression, z_scored

STRENGTH = 0.3


def problem(only_yes: bool, items: int = 70) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, weights and targets as methods give them: where only yes is known, all entries count."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(items, 4)).astype(np.float32)
    truth = rng.normal(size=(3, 4)) @ x.T + 0.3 * rng.normal(size=(3, items)) > 0.3
    known = rng.random(truth.shape) < 0.6
    weights = np.ones(truth.shape) if only_yes else known
    return x, weights.astype(np.float32), (truth & known).astype(np.float32)


ROWS = np.arange(70)[np.arange(70) % 5 != 1]
OUT = np.arange(70) % 5 == 1


@pytest.mark.parametrize("only_yes", [False, True])
def test_what_is_held_out_is_never_seen(only_yes: bool) -> None:
    """Neither features, nor what is known, nor whether it is known."""
    x, weights, targets = problem(only_yes)
    expected = estimate_targets(x, weights, targets, ROWS, STRENGTH, only_yes, seed=1)
    assert expected.shape == (3, len(ROWS))
    others = [
        (np.where(OUT[:, None], 99, x), weights, targets),
        (x, np.where(OUT, 1 - weights, weights), targets),
        (x, weights, np.where(OUT, 1 - targets, targets)),
    ]
    for changed in others:
        parts = (part.astype(np.float32) for part in changed)
        assert (estimate_targets(*parts, ROWS, STRENGTH, only_yes, seed=1) == expected).all()


def test_what_hides_under_unknown_entries_is_never_seen() -> None:
    x, weights, targets = problem(only_yes=False)
    hidden = np.where(weights == 0, 1 - targets, targets)
    one, other = (estimate_targets(x, weights, t, ROWS, STRENGTH, False, seed=1) for t in (targets, hidden))
    assert (one == other).all()


@pytest.mark.parametrize("only_yes", [False, True])
def test_known_entries_are_learned_from(only_yes: bool) -> None:
    x, weights, targets = problem(only_yes)
    one = estimate_targets(x, weights, targets, ROWS, STRENGTH, only_yes, seed=1)
    other = estimate_targets(x, weights, np.where(weights > 0, 1 - targets, targets), ROWS, STRENGTH, only_yes, seed=1)
    assert np.abs(one - other).mean() > 0.2


def test_where_some_no_is_known_it_is_one_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-9)
    x, weights, targets = problem(only_yes=False)
    x, weights, targets = x[ROWS], weights[:, ROWS], targets[:, ROWS]
    scores = np.stack([x @ w + b for w, b in (regression(x, weights[j], targets[j], STRENGTH) for j in range(3))])
    _, slope, biases = calibrated(scores, weights, targets)
    expected = 1 / (1 + np.exp(-(slope * z_scored(scores) + biases[:, None])))
    found = estimate_targets(x, weights, targets, np.arange(len(x)), STRENGTH, False, seed=1)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_where_only_yes_is_known_each_half_is_scored_by_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is scored has not been learned from: else what is unknown would be learned to be no."""
    monkeypatch.setattr(logistic, "TOLERANCE", 1e-9)
    x, weights, targets = problem(only_yes=True)
    everything = np.arange(len(x))
    half = np.random.default_rng(1).permutation(everything % 2)
    assert np.bincount(half).tolist() == [35, 35]
    scores = np.zeros(targets.shape)
    for part in (0, 1):
        for j in range(3):
            w, b = regression(x[half != part], weights[j, half != part], targets[j, half != part], STRENGTH)
            scores[j, half == part] = x[half == part] @ w + b
    _, slope, biases = calibrated(scores, weights, targets)
    expected = 1 / (1 + np.exp(-(slope * z_scored(scores) + biases[:, None])))
    found = estimate_targets(x, weights, targets, everything, STRENGTH, True, seed=1)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_targets_by_hand() -> None:
    known = np.array([[1, 1, 0, 0]], np.float32)
    targets = np.array([[1, 0, 0, 0]], np.float32)
    p = np.array([[0.2, 0.3, 0.4, 0.6]], np.float32)
    np.testing.assert_allclose(combine_targets(known, targets, p, only_yes=False), [[1, 0, 0.4, 0.6]])
    ones = np.ones_like(known)
    np.testing.assert_allclose(combine_targets(ones, targets, p, only_yes=True), [[0.6, 0.15, 0.2, 0.3]])
