"""Estimates of an audit against the truth, over many draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from completion.boards import board, truth_and_chance
from partly.completion.certificate import ZoneDecision
from partly.completion.estimates import Estimate, estimate
from partly.completion.pilot import Pilot

Z, CHANCE = truth_and_chance(1, 600)
KNOWN = (Z == 1) & (np.random.default_rng(9).random(Z.shape) < 0.3)
BOARD = board(Z, CHANCE, KNOWN, audited=True)


def drawn(seed: int, threshold: float) -> tuple[np.ndarray, Pilot, ZoneDecision]:
    """Answers to a pilot of 60 and to 80 random entries of a zone, and the decision to fill in the rest of the zone."""
    pilot = Pilot.draw(BOARD, seed, 60)
    answers = np.zeros_like(Z)
    answers[pilot.rows, pilot.columns] = Z[pilot.rows, pilot.columns]
    zone = BOARD.candidates & (threshold <= CHANCE) & (answers == 0)
    rows, columns = np.nonzero(zone)
    asked = np.random.default_rng(seed).permutation(len(rows))[:80]
    answers[rows[asked], columns[asked]] = Z[rows[asked], columns[asked]]
    errors = int((Z[rows[asked], columns[asked]] == -1).sum())
    return answers, pilot, ZoneDecision(1, threshold, len(rows) - 80, 80, errors)


def test_intervals_contain_the_truth_about_as_often_as_stated() -> None:
    hits = []
    for seed in range(100):
        answers, pilot, yes = drawn(seed, 0.8)
        found = estimate(BOARD, pilot, answers, yes)
        left = BOARD.candidates & (answers == 0)
        filled = left & (CHANCE >= 0.8)
        hidden, right = (left & (Z == 1)).sum(), (filled & (Z == 1)).sum()
        truth = hidden, (Z == 1).mean(), right / hidden, 2 * right / (filled.sum() + hidden)
        shares = found.hidden_yes, found.prevalence, found.recall, found.f1
        hits.append(
            [share is not None and share.low <= t <= share.high for share, t in zip(shares, truth, strict=True)]
        )
    assert (np.mean(hits, axis=0) >= 0.85).all()


def test_without_a_zone_there_is_no_recall() -> None:
    answers, pilot, _ = drawn(0, 0.8)
    found = estimate(BOARD, pilot, answers, ZoneDecision(1, None))
    assert found.recall is None
    assert found.f1 is None
    assert "recall" not in found.words
    assert found.hidden_yes.low < found.hidden_yes.value < found.hidden_yes.high


def test_wrong_probabilities_are_corrected() -> None:
    """Half of the probability: the model alone would miss half of the hidden yes."""
    timid = replace(BOARD, chance=CHANCE / 2)
    values = []
    for seed in range(60):
        pilot = Pilot.draw(timid, seed, 100)
        answers = np.zeros_like(Z)
        answers[pilot.rows, pilot.columns] = Z[pilot.rows, pilot.columns]
        values.append(estimate(timid, pilot, answers, ZoneDecision(1, None)).hidden_yes.value + (answers == 1).sum())
    assert abs(np.mean(values) / (BOARD.candidates & (Z == 1)).sum() - 1) < 0.1


def test_intervals_are_cut_to_what_is_possible() -> None:
    assert Estimate.of(0.9, 0.2, 1) == Estimate(0.9, 0.9 - 1.96 * 0.2, 1.0)
