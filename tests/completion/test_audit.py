"""Audits: questions in a fixed order, no more than needed, and a promise that answers bear out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from completion.boards import board, truth_and_chance
from partly.completion.audit import Audit, Rules, advance_audit, start_searches

Z, CHANCE = truth_and_chance(1, 600)
KNOWN = (Z == 1) & (np.random.default_rng(9).random(Z.shape) < 0.3)  # only yes
BOARD = board(Z, CHANCE, KNOWN, audited=True)


def audited(rules: Rules, seed: int, z: np.ndarray = Z) -> tuple[Audit, np.ndarray, list[int]]:
    """To its end, the truth answering."""
    searches, answers, batches = start_searches(BOARD, seed), np.zeros_like(z), []
    while len((found := advance_audit(searches, answers, rules)).rows):
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
    searches, answers = start_searches(BOARD, 0), np.zeros_like(Z)
    first = advance_audit(searches, answers, rules)
    for k, (i, j) in enumerate(zip(first.rows, first.columns, strict=True)):
        assert advance_audit(searches, answers, rules).sides[0].threshold is None, k
        answers[i, j] = 1
    found = advance_audit(searches, answers, rules)
    assert found.sides[0].threshold is not None
    assert found.sides[0].errors == 0
    assert found.sides[1].threshold is None


def test_no_waits_for_yes_and_keeps_its_share() -> None:
    """Without a certified yes nothing is known of the number of hidden yes, so nothing is filled in as no."""
    rules = Rules(0.9, 0.5, 0.2, 0.2, 400)
    searches = start_searches(BOARD, 0)
    first = advance_audit(searches, np.zeros_like(Z), rules)
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


def test_the_search_can_start_at_a_given_zone() -> None:
    yes, _ = start_searches(BOARD, 0, first=0.7)
    assert yes.thresholds[0] == 0.7
    assert (np.diff(yes.thresholds) < 0).all()


def test_wrong_answers_certify_nothing() -> None:
    found, answers, _ = audited(Rules(0.9, 0.5, 0.05, 0.05, 400), 0, -Z)
    assert all(side.threshold is None for side in found.sides)
    assert 0 < (answers != 0).sum() < 400  # it is given up where what is left could not do


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


def test_no_entry_is_in_a_zone_of_both_sides() -> None:
    yes, no = start_searches(BOARD, 0)
    assert yes.thresholds.min() > 1 - no.thresholds.min()


def test_the_same_answers_lead_to_the_same_questions() -> None:
    rules = Rules(0.9, 0.5, 0.05, 0.05, 100)
    one, two = (advance_audit(start_searches(BOARD, 4), np.zeros_like(Z), rules) for _ in range(2))
    other = advance_audit(start_searches(BOARD, 5), np.zeros_like(Z), rules)
    assert one.rows.tolist() == two.rows.tolist()
    assert one.rows.tolist() != other.rows.tolist()
