"""Scores of asking, against slow loops and by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly import Labels
from partly.active import simulation
from partly.active.selection import Questions
from partly.active.simulation import answers_from_truth, answers_to_match, area, recovery_scores


@given(seed=st.integers(0, 10**6))
def test_recovered_against_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth, known = rng.choice([1, -1, 0], size=(5, 4)), rng.choice([1, -1, 0, 0], size=(5, 4))
    beliefs = rng.choice([0.0, 0.4, 0.5, 0.9], size=(5, 4))
    hits = wrong = missed = yes = total = 0
    for i in range(5):
        for j in range(4):
            if known[i, j] == 0 and truth[i, j] != 0:
                said, right = beliefs[i, j] >= 0.5, truth[i, j] == 1
                hits, wrong, missed = (
                    hits + (said and right),
                    wrong + (said and not right),
                    missed + (right and not said),
                )
                yes, total = yes + right, total + 1
    found = recovery_scores(beliefs, Labels.from_ternary(truth), Labels.from_ternary(known))
    np.testing.assert_equal(
        found["recovered"], 2 * hits / (2 * hits + wrong + missed) if hits + wrong + missed else math.nan
    )
    np.testing.assert_equal(found["recovered_all_yes"], 2 * yes / (yes + total) if total else math.nan)
    np.testing.assert_equal(found["recovered_coin"], yes / (yes + total / 2) if total else math.nan)


def test_the_coin_is_what_a_coin_gives() -> None:
    rng = np.random.default_rng(0)
    truth = Labels.from_full(rng.random((400, 50)) < 0.2)
    nothing = Labels.from_ternary(np.zeros((400, 50), int))
    found = recovery_scores(rng.integers(0, 2, (400, 50)), truth, nothing)
    assert found["recovered"] == pytest.approx(found["recovered_coin"], abs=0.02)


def test_from_truth() -> None:
    truth = Labels.from_ternary([[1, -1], [0, 1]])
    questions = Questions(np.array([1, 0, 0, 1]), np.array([1, 1, 0, 0]), {})
    assert answers_from_truth(truth)(questions) == [True, False, True, None]


def rounds(*scores: float | None) -> list[dict[str, Any]]:
    return [{"round": n, "answers": 10 * n, "scores": {"P@1": score}} for n, score in enumerate(scores)]


def test_area_is_the_mean_after_the_first_answers() -> None:
    assert area(rounds(0.1, 0.5, 0.7)) == pytest.approx(0.6)
    assert math.isnan(area(rounds(0.1)))
    assert math.isnan(area(rounds(0.1, 0.5, None)))


@pytest.mark.parametrize(
    ("mine", "random", "expected"),
    [
        ((0.1, 0.4, 0.6), (0.1, 0.3, 0.4), (10, 20)),
        ((0.1, 0.2, 0.3), (0.1, 0.3, 0.4), (None, 20)),
        ((0.1, 0.5, 0.3), (0.1, 0.5, 0.4), (10, 10)),  # the best that random questions reached
    ],
)
def test_saved(mine: tuple[float, ...], random: tuple[float, ...], expected: tuple[int | None, int]) -> None:
    assert answers_to_match(rounds(*mine), rounds(*random)) == expected


def test_people_err_as_often_as_said_and_always_alike() -> None:
    truth = Labels.from_full(np.random.default_rng(0).random((200, 10)) < 0.3)
    rows, columns = (part.ravel() for part in np.indices((200, 10)))
    questions = Questions(rows, columns, {})
    right = np.array(simulation.answers_from_truth(truth)(questions))
    said = [np.array(simulation.answers_with_errors(truth, 0.1, seed)(questions)) for seed in (0, 0, 1)]
    assert (said[0] == said[1]).all()
    assert (said[0] != said[2]).any()
    assert abs((said[0] != right).mean() - 0.1) < 0.03
    assert simulation.answers_with_errors(truth, 0.0, 0)(questions) == right.tolist()


def test_answers_take_time_by_screen_and_by_answer() -> None:
    one = Questions(np.arange(14), np.array([0] * 13 + [2]), {})  # two screens of a label, one of another
    assert simulation.answer_seconds(one) == 14 * 1.5 + 3 * 3.0
    rounds = [{"round": k} for k in range(3)]
    nothing = Questions(np.empty(0, np.int64), np.empty(0, np.int64), {})
    found = simulation.add_seconds(rounds, [one, nothing])
    assert [each["seconds"] for each in found] == [0.0, 30.0, 30.0]
