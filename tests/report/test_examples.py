"""Which items and labels an example shows, worked by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partly.labels import Labels
from partly.report import examples
from partly.report.examples import ExampleEntry, Examples, choose_examples, evenly_spaced

NAMES = ("a", "b", "c", "d")


def test_lines_are_what_is_worth_a_look() -> None:
    p = np.array([[0.9, 0.2, 0.6, 0.1]])
    truth = Labels.from_ternary([[1, 1, -1, -1]], names=NAMES, ids=["it"])
    given = Labels.from_ternary([[0, 0, 0, 0]], names=NAMES, ids=["it"])
    (card,) = choose_examples(Examples((p,), truth, given), NAMES)
    assert card.entries == (ExampleEntry("a", 0.9, 0, 1), ExampleEntry("c", 0.6, 0, -1), ExampleEntry("b", 0.2, 0, 1))
    assert [line.wrong for line in card.entries] == [False, True, True]
    assert (card.id, card.summary, card.kind, card.label) == ("it", "2 of 4 known labels wrong", "fair", 0)


def test_what_was_given_is_shown_and_counts_where_there_is_no_truth() -> None:
    p = np.array([[0.9, 0.2, 0.3, 0.1]])
    given = Labels.from_ternary([[-1, -1, 0, 0]], names=NAMES)
    (card,) = choose_examples(Examples((p,), given=given), NAMES)
    assert [(line.name, line.wrong) for line in card.entries] == [("a", True), ("b", False)]
    assert card.summary == "1 of 2 known labels wrong"
    (card,) = choose_examples(Examples((p,)), NAMES)
    assert (card.id, card.summary, [line.name for line in card.entries]) == ("0", "no known label", ["a"])
    assert not any(line.wrong for line in card.entries)


def test_truth_goes_before_what_was_given() -> None:
    line = ExampleEntry("a", 0.9, given=-1, truth=1)  # people may be wrong, where a simulation makes them so
    assert not line.wrong


def test_of_too_many_lines_the_wrong_ones_stay() -> None:
    names = tuple(f"{j}" for j in range(40))
    truth = np.ones((1, 40), np.int8)
    p = np.linspace(0.95, 0.55, 40)[None]
    truth[0, 38], p[0, 39] = -1, 0.05
    (card,) = choose_examples(Examples((p,), Labels.from_ternary(truth, names=names)), names)
    assert [line.name for line in card.entries] == [*map(str, range(examples.MAX_ENTRIES - 2)), "38", "39"]
    assert card.summary == "2 of 40 known labels wrong"


def test_of_what_is_a_no_and_called_no_there_is_soon_enough() -> None:
    names = tuple(f"{j}" for j in range(20))
    given = Labels.from_ternary(-np.ones((1, 20), np.int8), names=names)
    (card,) = choose_examples(Examples((np.linspace(0.4, 0.1, 20)[None],), given=given), names)
    assert [line.name for line in card.entries] == [str(j) for j in range(examples.MAX_ENTRIES_WITH_TRUE_NEGATIVES)]


def test_a_fair_sample_then_the_most_confidently_wrong_then_the_unknown_that_are_most_surely_yes() -> None:
    items = 50
    truth, given = np.full((items, 4), -1, np.int8), np.full((items, 4), -1, np.int8)
    p = np.full((items, 4), 0.1)
    p[3, 0], p[4, 0], p[5, 1], p[6, 3] = 0.9, 0.95, 0.7, 0.45  # the last one is right; of the first label one is enough
    truth[8:12, 2], given[8:12, 2], p[8:12, 2] = (
        1,
        0,
        (0.8, 0.99, 0.97, 0.3),
    )  # two are surely yes; the last one is missed
    made = (Labels.from_ternary(z, names=NAMES) for z in (truth, given))
    found = choose_examples(Examples((p,), *made), NAMES)
    fair = [round(k * 49 / 5) for k in range(6)]
    assert [(card.item, card.kind, card.label) for card in found[len(fair) :]] == [
        (4, "wrong", 0),
        (5, "wrong", 1),
        (11, "wrong", 2),
        (9, "unknown", 2),
    ]
    assert [(card.item, card.kind) for card in found[: len(fair)]] == [(i, "fair") for i in fair]


def test_a_label_is_called_by_its_own_threshold() -> None:
    p = np.array([[0.3, 0.6, 0.1, 0.1]])
    truth = Labels.from_ternary([[1, -1, -1, -1]], names=NAMES)
    (card,) = choose_examples(Examples((p,), truth), NAMES, np.array([0.25, 0.7, 0.5, 0.5]))
    assert card.summary == "all 4 known labels right"
    assert [(line.name, line.prediction) for line in card.entries] == [("b", -1), ("a", 1)]


@given(st.integers(1, 500), st.integers(1, 60))
def test_spread_is_even_and_has_both_ends(count: int, most: int) -> None:
    found = evenly_spaced(count, most)
    assert len(found) == min(count, most)
    assert found[0] == 0
    assert found[-1] == (count - 1 if most > 1 else 0)
    steps = np.diff(found)
    assert not len(steps) or steps.max() - steps.min() <= 1
