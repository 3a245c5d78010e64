"""AffineMaps that make logits of scores, against a plain optimizer and a grid."""

from __future__ import annotations

import numpy as np
import pytest

from partly.solvers import calibration
from partly.solvers.calibration import MIN_SLOPE, calibrate, z_scores
from solvers.by_hand import calibrated, z_scored


def made(labels: int = 3, items: int = 60, worth: float = 1.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of very different scales and places, weights (a third of them 0) and targets."""
    rng = np.random.default_rng(0)
    targets = (rng.random((labels, items)) < 0.3).astype(np.float32)
    scores = (rng.normal(size=targets.shape) + worth * targets) * [[0.1], [1.0], [50.0]] + [[0.0], [-7.0], [400.0]]
    weights = np.where(rng.random(targets.shape) < 0.3, 0, rng.uniform(0.5, 2, targets.shape))
    return scores.astype(np.float32), weights.astype(np.float32), targets


def loss_of(logits: np.ndarray, weights: np.ndarray, targets: np.ndarray) -> float:
    logits = logits.astype(float)
    return float((weights * (np.logaddexp(0, logits) - targets * logits)).sum() / weights.sum())


def test_against_a_plain_optimizer() -> None:
    scores, weights, targets = made()
    line = calibrate(scores, weights, targets)
    loss, slope, biases = calibrated(scores, weights, targets)
    assert line.loss == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(line(scores), slope * z_scored(scores) + biases[:, None], atol=0.02)
    assert line.loss == pytest.approx(loss_of(line(scores), weights, targets), rel=1e-4)


def test_against_a_grid() -> None:
    """One label: slope and bias by looking everywhere."""
    scores, weights, targets = (part[:1] for part in made(items=200))
    z = z_scored(scores)
    grid = [(a, b) for a in np.linspace(0, 3, 61) for b in np.linspace(-3, 1, 81)]
    least = min(loss_of(a * z + b, weights, targets) for a, b in grid)
    found = calibrate(scores, weights, targets)
    # The one entry more that keeps biases finite costs a little.
    assert found.loss == pytest.approx(least, abs=1e-3)


def test_scale_and_place_of_scores_change_nothing() -> None:
    scores, weights, targets = made()
    moved = scores * [[9.0], [2.0], [1.0]] + [[5.0], [0.5], [-100.0]]
    one, other = calibrate(scores, weights, targets), calibrate(moved.astype(np.float32), weights, targets)
    assert other.loss == pytest.approx(one.loss, rel=1e-4)
    np.testing.assert_allclose(other(moved), one(scores), atol=0.01)


def test_entries_that_do_not_count_are_not_looked_at() -> None:
    scores, weights, targets = made()
    one, other = (calibrate(scores, weights, t) for t in (targets, np.where(weights == 0, 1 - targets, targets)))
    assert one.loss == other.loss
    assert (one.slope == other.slope).all()
    assert (one.bias == other.bias).all()


def test_scores_that_are_worth_nothing_keep_their_order() -> None:
    scores, weights, targets = made(worth=-3)
    line = calibrate(scores, weights, targets)
    assert line.loss == pytest.approx(calibrated(0 * scores, weights, targets)[0], rel=1e-4)
    np.testing.assert_allclose(line(scores).std(axis=1), MIN_SLOPE, rtol=1e-3)
    assert (np.argsort(line(scores)[1]) == np.argsort(scores[1])).all()


def test_a_label_that_hardly_varies_is_not_blown_up() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(3, 40)).astype(np.float32)
    scores[1] *= 1e-6
    scores[2] = 5.0
    line = z_scores(scores)
    deviation = line(scores).std(axis=1)
    assert deviation[0] == pytest.approx(1, rel=1e-4)
    assert deviation[1] == 0  # noise beside the others
    assert deviation[2] < 1e-3
    assert np.abs(line(scores)[:2].mean(axis=1)).max() < 1e-4


def test_constant_scores_and_a_single_item() -> None:
    for shape in ((2, 5), (1, 1)):
        line = calibrate(np.full(shape, 3, np.float32), np.ones(shape, np.float32), np.zeros(shape, np.float32))
        assert np.isfinite(line(np.full(shape, 3, np.float32))).all()
        assert np.isfinite(line.loss)


def test_of_many_entries_some_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, weights, targets = made(items=4000)
    whole = calibrate(scores, weights, targets)
    monkeypatch.setattr(calibration, "MAX_ENTRIES", 3 * 2000)
    some, again = (calibrate(scores, weights, targets) for _ in range(2))
    assert some.loss == again.loss != whole.loss
    assert some.loss == pytest.approx(whole.loss, rel=0.05)
    np.testing.assert_allclose(some(scores), whole(scores), atol=0.3)
