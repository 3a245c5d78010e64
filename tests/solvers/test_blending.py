"""Learners as one, against what the words say, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly.solvers.blending import (
    CLEAR_GAIN,
    MIN_GAIN,
    TEMPERATURE,
    blend,
    blend_or_first,
    relative_gains,
    softmax_weights,
    without_negligible,
)
from solvers.by_hand import calibrated, z_scored


def made(quality: tuple[float, ...] = (1.5, 0.7), items: int = 120) -> tuple[list, np.ndarray, np.ndarray]:
    """Held-out scores of learners of such quality, at scales that have nothing to do with it."""
    rng = np.random.default_rng(0)
    targets = (rng.random((2, items)) < 0.4).astype(np.float32)
    scores = [(rng.normal(size=targets.shape) + q * targets) * 10.0**k + k for k, q in enumerate(quality)]
    weights = (rng.random(targets.shape) < 0.7).astype(np.float32)
    return [part.astype(np.float32) for part in scores], weights, targets


def losses(held_out: list, weights: np.ndarray, targets: np.ndarray) -> list[float]:
    return [calibrated(scores, weights, targets)[0] for scores in held_out]


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=5))
def test_shares_are_a_soft_maximum_by_hand(worth: list[float]) -> None:
    best = max([*worth, MIN_GAIN])
    expected = [np.exp((gain - best) / (TEMPERATURE * best)) for gain in worth]
    if sum(expected) < 1e-300:  # further below nothing than a number can say
        return
    found = softmax_weights(worth)
    np.testing.assert_allclose(found, np.array(expected) / sum(expected), rtol=1e-6, atol=1e-12)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("worth", [[-1.0], [-5.0, -9.0], [-100.0, -100.0]])
def test_shares_sum_to_one_where_nobody_is_worth_anything(worth: list[float]) -> None:
    """Far below the prior, where an exponential is 0 for all."""
    found = softmax_weights(worth)
    assert found.sum() == pytest.approx(1)
    assert found.argmax() == int(np.argmax(worth))


def test_shares_favour_the_better_and_share_among_equals() -> None:
    assert softmax_weights([0.3, 0.3]).tolist() == [0.5, 0.5]
    better, worse, useless = softmax_weights([0.4, 0.38, -0.2])
    assert better > worse > 0.2
    assert useless < 1e-6


def test_the_gain_is_what_is_taken_away_from_the_prior() -> None:
    _, weights, targets = made()
    prior = calibrated(np.zeros_like(targets), weights, targets)[0]
    found = relative_gains([0.0, prior, prior / 4], weights, targets)
    assert found == pytest.approx([1, 0, 0.75], abs=1e-4)


def test_a_blend_is_the_calibrated_sum_of_z_scores() -> None:
    held_out, weights, targets = made()
    counts = [0.7, 0.3]
    together = sum(c * z_scored(scores) for c, scores in zip(counts, held_out, strict=True))
    loss, slope, biases = calibrated(together, weights, targets)
    expected = slope * z_scored(together) + biases[:, None]
    found = blend(held_out, counts, weights, targets)
    np.testing.assert_allclose(found.held_out, expected, atol=0.02)
    assert found.loss == pytest.approx(loss, rel=1e-4)
    # What the parts would say of new items is what they say of these.
    by_parts = sum(s[:, None] * scores for s, scores in zip(found.slopes, held_out, strict=True))
    np.testing.assert_allclose(by_parts + found.bias[:, None], expected, atol=0.02)


def test_two_that_err_apart_are_better_than_each() -> None:
    held_out, weights, targets = made((1.2, 1.2))
    found = blend(held_out, [0.5, 0.5], weights, targets)
    assert found.loss < 0.95 * min(losses(held_out, weights, targets))


def test_a_blend_that_harms_is_not_taken() -> None:
    """The first is good, the second noise, and yet it is to count almost all."""
    held_out, weights, targets = made((3.0, 0.0))
    each = losses(held_out, weights, targets)
    found, counts = blend_or_first(held_out, [0.05, 0.95], each, weights, targets)
    assert counts == [1.0, 0.0]
    assert found.loss == pytest.approx(each[0], rel=1e-4)
    assert not found.slopes[1].any()


def test_a_blend_that_is_not_clearly_worse_is_taken() -> None:
    held_out, weights, targets = made((1.5, 1.0))
    each = losses(held_out, weights, targets)
    found, counts = blend_or_first(held_out, [0.6, 0.4], each, weights, targets)
    assert counts == [0.6, 0.4]
    assert found.slopes[1].any()
    first, together = relative_gains([each[0], found.loss], weights, targets)
    assert together > first - CLEAR_GAIN


def test_a_learner_that_says_nothing_adds_nothing() -> None:
    held_out, weights, targets = made((1.5,))
    found = blend([*held_out, np.zeros_like(held_out[0])], [0.5, 0.5], weights, targets)
    alone = blend(held_out, [1.0], weights, targets)
    np.testing.assert_allclose(found.held_out, alone.held_out, atol=1e-3)


def test_negligible_weights_are_shared_by_the_rest() -> None:
    assert without_negligible([0.5, 0.3, 0.019, 0.181]) == pytest.approx([0.5 / 0.981, 0.3 / 0.981, 0, 0.181 / 0.981])
    assert without_negligible([0.02, 0.98]) == [0.02, 0.98]
