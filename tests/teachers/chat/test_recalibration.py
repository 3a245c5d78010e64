"""Probabilities of a language model are recalibrated on people's entries."""

from __future__ import annotations

import numpy as np

from partly import Labels
from partly.teachers.chat.recalibration import match, recalibrate

NAMES = ("a", "b")


def test_overconfident_probabilities_become_calibrated() -> None:
    rng = np.random.default_rng(0)
    chance = rng.choice([0.02, 0.98], (3000, 2)).astype(np.float32)
    truth = rng.random(chance.shape) < np.where(chance > 0.5, 0.8, 0.3)
    ids = [f"i{k}" for k in range(3000)]
    known = Labels.from_nan(np.where(rng.random(chance.shape) < 0.2, truth, np.nan), names=NAMES, ids=ids)
    found = recalibrate(chance, known, ids, NAMES)
    np.testing.assert_allclose(found[chance > 0.5], 0.8, atol=0.05)
    np.testing.assert_allclose(found[chance < 0.5], 0.3, atol=0.05)


def test_no_opinion_stays_and_too_few_answers_change_nothing() -> None:
    chance = np.full((40, 2), 0.9, np.float32)
    chance[0, 0] = np.nan
    ids = [f"i{k}" for k in range(40)]
    z = np.full((40, 2), np.nan)
    z[1:11, 0] = [1, 0] * 5
    few = Labels.from_nan(z, names=NAMES, ids=ids)
    np.testing.assert_array_equal(recalibrate(chance, few, ids, NAMES), chance)
    z[1:31, 1] = [1, 0] * 15
    enough = recalibrate(chance, Labels.from_nan(z, names=NAMES, ids=ids), ids, NAMES)
    assert np.isnan(enough[0, 0])
    np.testing.assert_allclose(enough[1:], 0.5, atol=0.05)


def test_entries_are_matched_by_name() -> None:
    known = Labels.from_nan([[1, np.nan], [0, 1]], names=("b", "c"), ids=("y", "z"))
    np.testing.assert_array_equal(match(known, ("x", "z", "y"), NAMES), [[0, 0], [0, -1], [0, 1]])
