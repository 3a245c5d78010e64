"""Pilots of audits: drawn with known probabilities, so that totals are estimated without bias."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from completion.boards import board, truth_and_chance
from partly.completion.pilot import Pilot

Z, CHANCE = truth_and_chance(1, 600)
BOARD = board(Z, CHANCE, np.zeros(Z.shape, bool), audited=True)
BOARD = replace(BOARD, observed=np.where(np.arange(len(Z))[:, None] < 1, 1, 0).astype(np.int8))


def test_probable_yes_are_drawn_more_often() -> None:
    pilots = [Pilot.draw(BOARD, seed, 30) for seed in range(40)]
    drawn = np.concatenate([pilot.yes_chance for pilot in pilots])
    assert drawn.mean() > 1.3 * CHANCE.mean()
    for pilot in pilots:
        assert len({*zip(pilot.rows.tolist(), pilot.columns.tolist(), strict=True)}) == 30


def test_totals_are_unbiased_over_all_draws() -> None:
    """Two of four entries, every order by its probability: the mean estimate is the total."""
    weight, yes = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1, -1, 1, 1], np.int8)
    chance = np.array([0.9, 0.6, 0.3, 0.1])
    mean = 0.0
    for first, second in itertools.permutations(range(4), 2):
        draws = np.array([weight[first] / 10, weight[second] / (10 - weight[first])])
        places = np.array([first, second])
        pilot = Pilot(places, np.zeros(2, np.int64), draws, chance[places])
        estimate, _ = pilot.estimate_total(float(chance.sum()), np.ones(2, bool), yes[:, None])
        mean += draws[0] * draws[1] * estimate
    assert mean == pytest.approx(3)


def test_intervals_of_totals_hold_about_as_often_as_stated() -> None:
    hits = []
    for seed in range(100):
        pilot = Pilot.draw(BOARD, seed, 60)
        estimate, error = pilot.estimate_total(float(CHANCE.sum()), np.ones(60, bool), Z)
        hits.append(abs(estimate - (Z == 1).sum()) <= 1.96 * error)
    assert np.mean(hits) >= 0.85


def test_answers_recalibrate() -> None:
    """Odds that are e times too high: over many pilots, most of the bias goes, and the order of entries stays."""
    bold = replace(BOARD, chance=1 / (1 + (1 / CHANCE - 1) * np.exp(-1)))
    corrected = [Pilot.draw(bold, seed, 200).recalibrate(bold.chance, Z) for seed in range(20)]
    bias = np.mean(corrected) - CHANCE.mean()
    assert abs(bias) < 0.3 * (bold.chance.mean() - CHANCE.mean())
    assert (np.argsort(corrected[0], axis=None) == np.argsort(bold.chance, axis=None)).all()
    none = Pilot.draw(bold, 0, 0)
    assert none.recalibrate(bold.chance, Z) == pytest.approx(bold.chance)
