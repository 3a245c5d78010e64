"""Thresholds of the best expected F1, against looking at all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partly.solvers.thresholds import PSEUDO_COUNT, TRUSTED_GAIN, best_f1, best_thresholds


def expected_f1(p: np.ndarray, called: np.ndarray) -> float:
    """2 E[hits] / (called + E[yes]), the ratio of expectations."""
    return 2 * p[called].sum() / (called.sum() + p.sum()) if called.any() else 0.0


probabilities = arrays(np.float32, st.integers(1, 7), elements=st.floats(0, 1, width=32))


@given(probabilities)
def test_no_way_of_calling_items_is_better(p: np.ndarray) -> None:
    p = p.astype(float)
    if p.sum() < 1e-6:
        return
    best = max(expected_f1(p, np.array(called, bool)) for called in product([0, 1], repeat=len(p)))
    assert best_f1(p.astype(np.float32)) == pytest.approx(best, rel=1e-5)


@given(arrays(np.float32, st.tuples(st.just(2), st.integers(1, 7)), elements=st.floats(1 / 64, 1, width=32)))
def test_calling_yes_from_the_threshold_on_reaches_the_best(p: np.ndarray) -> None:
    found = best_thresholds(p, np.ones_like(p), only_yes=False, gain=1)
    for row, threshold in zip(p.astype(float), found, strict=True):
        tried = [expected_f1(row, row >= t) for t in row]
        # A number that is the threshold may fall on either side: it changes nothing.
        reached = max(expected_f1(row, row >= threshold * factor) for factor in (0.9999, 1.0001))
        assert reached == pytest.approx(max(tried), rel=1e-4)


def test_real_labels_are_called_best_there() -> None:
    """Labels drawn from the probabilities: no other threshold has a clearly better F1."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2, (1, 20_000)).astype(np.float32)
    y = rng.random(p.shape) < p
    (threshold,) = best_thresholds(p, y.astype(np.float32), only_yes=False, gain=1)

    def f1(t: float) -> float:
        called = p >= t
        return 2 * (called & y).sum() / (called.sum() + y.sum())

    assert f1(threshold) > max(f1(t) for t in np.linspace(0.01, 0.99, 99)) - 0.005
    assert f1(threshold) > f1(0.5) + 0.02


def test_with_only_yes_known_thresholds_are_scaled_by_what_is_known() -> None:
    """A quarter of the yes is known, of every label: what is called is what would be called if all were."""
    rng = np.random.default_rng(0)
    p = rng.choice([0.001, 0.999], (3, 6000), p=[0.7, 0.3]).astype(np.float32)
    known = (rng.random(p.shape) < p) & (rng.random(p.shape) < 0.25)
    full = best_thresholds(p, np.ones_like(p), only_yes=False, gain=1)
    found = best_thresholds(p / 4, known.astype(np.float32), only_yes=True, gain=1)
    np.testing.assert_allclose(found, full / 4, rtol=0.01)
    assert ((p / 4 >= found[:, None]) == (p >= full[:, None])).all()


def test_the_share_known_by_hand() -> None:
    """Two known yes of the first label, none of the second: it has what both have together."""
    p = np.array([[0.2, 0.4, 0.1, 0.1], [0.1, 0.1, 0.1, 0.1]], np.float32)
    targets = np.array([[1, 1, 0, 0], [0, 0, 0, 0]], np.float32)
    pooled = 0.6 / 2
    known = np.array([(0.6 + PSEUDO_COUNT * pooled) / (2 + PSEUDO_COUNT), pooled])
    expected = [known[0] * best_f1(np.minimum(p[0] / known[0], 1)) / 2, known[1] / 2]  # no yes is known of the second
    np.testing.assert_allclose(best_thresholds(p, targets, only_yes=True, gain=1), expected, rtol=1e-2)


def test_the_less_was_learned_the_nearer_to_one_half() -> None:
    """Constant probabilities: the best expected F1 is to call everything yes, and nobody wants that."""
    p, targets = np.full((1, 50), 0.05, np.float32), np.zeros((1, 50), np.float32)
    targets[0, :3] = 1
    own = best_f1(p[0]) / 2
    assert own < 0.05
    for gain, expected in (
        (1.0, own),
        (TRUSTED_GAIN, own),
        (TRUSTED_GAIN / 2, (own + 0.5) / 2),
        (0.0, 0.5),
        (-1.0, 0.5),
    ):
        assert best_thresholds(p, targets, only_yes=False, gain=gain) == pytest.approx(expected, rel=1e-5)


def test_the_edges_are_defined() -> None:
    for p in (np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32), np.zeros((2, 0), np.float32)):
        for only_yes in (False, True):
            found = best_thresholds(p, np.zeros_like(p), only_yes, gain=0.5)
            assert np.isfinite(found).all()
            assert ((found >= 0) & (found <= 1)).all()
