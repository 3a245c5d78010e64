"""Audits: questions in a fixed order, no more than needed, and a promise that answers bear out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta

from completion.boards import board, truth_and_chance
from partly.completion.audit import Audit, Rules, advance_audit, start_searches
from partly.completion.pilot import Pilot

Z, CHANCE = truth_and_chance(1, 600)
KNOWN = (Z == 1) & (np.random.default_rng(9).random(Z.shape) < 0.3)  # only yes
BOARD = board(Z, CHANCE, KNOWN, audited=True)


def audited(rules: Rules, seed: int, z: np.ndarray = Z) -> tuple[Audit, np.ndarray, list[int]]:
    """To its end, the truth answering."""
    answers, batches = np.zeros_like(z), []
    while len((found := advance_audit(BOARD, answers, rules, seed)).rows):
        assert (answers[found.rows, found.columns] == 0).all()
        assert BOARD.candidates[found.rows, found.columns].all()
        answers[found.rows, found.columns] = z[found.rows, found.columns]
        batches.append(len(found.rows))
    return found, answers, batches


@pytest.mark.parametrize("budget", [0, 30, 120])
def test_the_budget_is_kept(budget: int) -> None:
    found, answers, _ = audited(Rules(0.9, 0.5, 0.1, 0.1, budget), 0)
    assert (answers != 0).sum() <= budget
    assert sum(side.asked for side in found.sides) == (answers != 0).sum()


def test_right_answers_stop_it_as_soon_as_the_bound_is_met() -> None:
    """All right: the first zone of yes passes with the fewest questions that can do, and not one is left out."""
    rules = Rules(0.9, None, 0.05, 0.05, 100)
    answers = np.zeros_like(Z)
    first = advance_audit(BOARD, answers, rules, 0)
    for k, (i, j) in enumerate(zip(first.rows, first.columns, strict=True)):
        assert advance_audit(BOARD, answers, rules, 0).sides[0].threshold is None, k
        answers[i, j] = 1
    found = advance_audit(BOARD, answers, rules, 0)
    assert found.sides[0].threshold is not None
    assert found.sides[0].errors == 0
    assert found.sides[1].threshold is None


def test_no_waits_for_yes_and_keeps_its_share() -> None:
    """Without a certified yes nothing is known of the number of hidden yes, so nothing is filled in as no."""
    rules = Rules(0.9, 0.5, 0.2, 0.2, 400)
    first = advance_audit(BOARD, np.zeros_like(Z), rules, 0)
    assert (CHANCE[first.rows, first.columns] >= 0.5).all()
    broken = certified = 0
    for seed in range(60):
        found, answers, _ = audited(rules, seed)
        yes, no = found.sides
        assert no.threshold is None or yes.threshold is not None
        if no.threshold is not None:
            hidden = BOARD.candidates & (answers == 0)
            filled = hidden & (no.threshold <= 1 - CHANCE)
            certified += 1
            broken += bool((filled & (Z == 1)).sum() > 0.5 * (hidden & (Z == 1)).sum())
    assert certified > 10
    assert beta.ppf(0.001, broken, 60 - broken + 1) <= 0.4 if broken else True


def test_wrong_answers_certify_nothing() -> None:
    found, answers, _ = audited(Rules(0.9, 0.5, 0.05, 0.05, 400), 0, -Z)
    assert all(side.threshold is None for side in found.sides)
    assert 0 < (answers != 0).sum() < 100  # it is given up where what is left could not do


def test_the_promise_is_kept_over_many_orders_of_asking() -> None:
    broken = certified = 0
    for seed in range(150):
        found, answers, _ = audited(Rules(0.9, 0.5, 0.2, 0.2, 150), seed)
        side = found.sides[0]
        if side.threshold is not None:
            filled = BOARD.candidates & (answers == 0) & (side.threshold <= CHANCE)
            assert side.filled == filled.sum()
            certified += 1
            broken += bool((Z[filled] == 1).mean() < 0.9)
    assert certified > 30
    assert beta.ppf(0.001, broken, 150 - broken + 1) <= 0.2 if broken else True


def test_no_entry_is_in_a_zone_of_both_sides_or_asked_twice() -> None:
    rules = Rules(0.9, 0.5, 0.1, 0.1, 200, pilot=40)
    pilot = Pilot.draw(BOARD, 0, rules.pilot)
    yes, no = start_searches(BOARD, 0, rules, pilot, Z)
    assert yes.laxest > 1 - no.thresholds.min()
    asked = set(zip(pilot.rows.tolist(), pilot.columns.tolist(), strict=True))
    assert len(asked) == 40
    assert not asked & set(zip(yes.rows.tolist(), yes.columns.tolist(), strict=True))


def test_a_pilot_is_asked_first_and_keeps_the_promise() -> None:
    rules = Rules(0.9, None, 0.2, 0.2, 250, pilot=30)
    broken = certified = 0
    for seed in range(80):
        found, answers, batches = audited(rules, seed)
        assert batches[0] == 30
        assert (answers != 0).sum() == found.sides[0].asked <= 250
        if (threshold := found.sides[0].threshold) is not None:
            filled = BOARD.candidates & (answers == 0) & (threshold <= CHANCE)
            certified += 1
            broken += bool((Z[filled] == 1).mean() < 0.9)
    assert certified > 20
    assert beta.ppf(0.001, broken, 80 - broken + 1) <= 0.2 if broken else True


def test_scores_that_claim_too_much_are_found_out_by_the_pilot() -> None:
    """Probabilities that are far too high: the pilot says so, and the first zone becomes stricter."""
    bold = board(Z, 1 / (1 + (1 / CHANCE - 1) ** 3 * np.exp(-4)), KNOWN, audited=True)
    rules = Rules(0.9, None, 0.05, 0.05, 200, pilot=40)
    pilot = Pilot.draw(bold, 0, rules.pilot)
    yes, _ = start_searches(bold, 0, rules, pilot, Z)
    trusting, _ = start_searches(bold, 0, replace(rules, pilot=0), Pilot.draw(bold, 0, 0), Z)
    assert not yes.zones or yes.zones[0].threshold > trusting.zones[0].threshold


def test_without_a_promising_zone_nothing_more_is_asked() -> None:
    flat = board(Z, np.full_like(CHANCE, 0.3), KNOWN, audited=True)
    assert not len(advance_audit(flat, np.zeros_like(Z), Rules(0.9, 0.5, 0.05, 0.05, 200), 0).rows)


def test_the_same_answers_lead_to_the_same_questions() -> None:
    rules = Rules(0.9, 0.5, 0.05, 0.05, 100)
    one, two = (advance_audit(BOARD, np.zeros_like(Z), rules, 4) for _ in range(2))
    other = advance_audit(BOARD, np.zeros_like(Z), rules, 5)
    assert one.rows.tolist() == two.rows.tolist()
    assert one.rows.tolist() != other.rows.tolist()
