"""Which questions are posed, against slow and obvious reckoning."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly import Classifier
from partly.annotate.question_selection import (
    NO_CANDIDATES,
    Candidates,
    QuestionDraft,
    bundle_by_item,
    compute_expected_value,
    concatenate,
    diversify,
    interleave,
    sample_unknown,
    select_candidates,
)
from partly.clock import Clock
from partly.labels import Hierarchy, Labels

ABOVE = [(1, 0), (2, 0)]  # cat and dog below animal


def test_the_value_of_a_parent_counts_what_its_no_settles() -> None:
    score = np.array([[0.2, 0.5, 0.4, 0.3]])
    chance = np.array([[0.25, 0.5, 0.1, 0.5]])
    unknown = np.array([[True, True, False, True]])  # dog is known
    found = compute_expected_value(score, chance, unknown, ABOVE)
    animal = 0.2 + 0.75 * 0.5  # its own, and cat where it is no
    cat = 0.5 + 0.5 * 0.2  # its own, and animal where it is yes
    dog = 0.4 + 0.1 * 0.2
    np.testing.assert_allclose(found, [[animal, cat, dog, 0.3]])


def by_hand(count: int, columns: list[int], rows: list[int], values: list[float], vectors: np.ndarray) -> list[int]:
    """Greedy, every worth anew from all that were chosen."""
    middle = np.median(((vectors - np.roll(vectors, len(vectors) // 2, axis=0)) ** 2).sum(axis=1))
    chosen: list[int] = []
    for _ in range(count):
        best, most = None, -np.inf
        for i in range(len(rows)):
            if i in chosen:
                continue
            worth = values[i] + 1e-9
            for j in chosen:
                if columns[i] == columns[j]:
                    worth *= 1 - np.exp(-((vectors[i] - vectors[j]) ** 2).sum() / (0.1 * middle))
            if worth > most + 1e-15:
                best, most = i, worth
        if best is not None:
            chosen.append(best)
    return chosen


def made(rows: list[int], columns: list[int], values: list[float]) -> Candidates:
    numbers = np.array(values)
    return Candidates(np.array(rows), np.array(columns), numbers, numbers, numbers)


def test_unlike_ones_by_a_slow_loop() -> None:
    rng = np.random.default_rng(1)
    rows, columns = list(range(40)), rng.integers(0, 3, 40).tolist()
    values, vectors = rng.random(40).tolist(), rng.normal(size=(40, 2))
    found = diversify(made(rows, columns, values), vectors, 12, [])
    assert found.rows.tolist() == by_hand(12, columns, rows, values, vectors)


def test_near_twins_are_asked_once() -> None:
    """Twenty items that are nearly one, and a different one of less value: that is the second question."""
    vectors = np.vstack(
        [np.full((20, 2), 1.0) + np.arange(20)[:, None] * 1e-4, [[5.0, 5.0]], np.arange(40).reshape(20, 2)]
    )
    values = [1.0] * 20 + [0.5] + [0.01] * 20
    found = diversify(made(list(range(41)), [0] * 41, values), vectors, 2, [])
    assert found.rows.tolist()[1] == 20
    other = diversify(
        made(list(range(41)), list(range(41)), values), vectors, 2, []
    )  # for another label it is worth asking
    assert other.rows.tolist() == [0, 1]


def test_a_label_and_one_above_it_are_not_asked_at_once() -> None:
    vectors = np.array([[0.0], [0.0], [9.0], [9.0]])
    found = diversify(made([0, 0, 1, 1], [0, 1, 1, 2], [0.9, 1.0, 0.5, 0.4]), vectors, 4, ABOVE)
    assert list(zip(found.rows.tolist(), found.columns.tolist(), strict=True)) == [(0, 1), (1, 1), (1, 2)]
    assert len(diversify(NO_CANDIDATES, np.empty((0, 1)), 3, [])) == 0


def test_random_ones_are_drawn_alike_from_all_unknown_entries() -> None:
    z = np.zeros((3, 3), np.int8)
    z[0] = 1  # all known
    z[1, 0] = -1
    labels, asked = Labels.from_ternary(z), {(2, 2)}
    able = {(1, 1), (1, 2), (2, 0), (2, 1)}
    counts = Counter(sample_unknown(labels, 1, np.random.default_rng(seed), asked)[0] for seed in range(800))
    assert set(counts) == able
    expected = 800 / 4
    assert sum((count - expected) ** 2 / expected for count in counts.values()) < 16.3  # chi squared, 3 degrees, 0.001
    assert set(sample_unknown(labels, 10, np.random.default_rng(0), asked)) == able
    assert sample_unknown(Labels.from_ternary(np.ones((2, 2), np.int8)), 3, np.random.default_rng(0)) == []


@given(best=st.integers(0, 40), random=st.integers(0, 12), again=st.integers(0, 6), seed=st.integers(0, 99))
def test_a_queue_holds_all_once_and_chosen_ones_in_order(best: int, random: int, again: int, seed: int) -> None:
    one = [QuestionDraft(i, 0, False) for i in range(best)]
    two = [QuestionDraft(i, 1, True) for i in range(random)]
    three = [QuestionDraft(i, 2, False, repeats=i) for i in range(again)]
    found = interleave(one, two, three, np.random.default_rng(seed))
    assert sorted((w.column, w.row) for w in found) == sorted((w.column, w.row) for w in (*one, *two, *three))
    assert [w.row for w in found if w.column == 0] == list(range(best))


def test_random_ones_are_spread_over_the_queue() -> None:
    """One in every ten places, and not always at the same."""
    chosen, random = [QuestionDraft(i, 0, False) for i in range(90)], [QuestionDraft(i, 1, True) for i in range(10)]
    places = [
        [p for p, w in enumerate(interleave(chosen, random, [], np.random.default_rng(s))) if w.random]
        for s in range(30)
    ]
    assert all([place // 10 for place in one] == list(range(10)) for one in places)
    assert len({place % 10 for one in places for place in one}) == 10


@pytest.fixture(scope="module")
def trained() -> tuple[Classifier, np.ndarray, Labels]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2)).astype(np.float32)
    z = np.where(x @ rng.normal(size=(2, 3)) + rng.normal(size=(30, 3)) > 0, 1, -1).astype(np.int8)
    z[rng.random(z.shape) < 0.5] = 0
    labels = Labels.from_ternary(z, names=["animal", "cat", "boat"])
    return Classifier("bce", "linear", progress=False).fit(x, labels), x, labels


def test_candidates_by_hand(trained: tuple[Classifier, np.ndarray, Labels]) -> None:
    """Entropy, what it settles, by the second; never what is known or was asked."""
    model, x, labels = trained
    hierarchy = Hierarchy({"cat": "animal"})
    seconds, asked = np.array([1.0, 2.0, 8.0]), {(0, 0), (5, 2)}
    found = select_candidates(
        "uncertainty",
        model.fitted_.method,
        model.fitted_.prepare_items(model._items(x, reset=False)),
        labels,
        25,
        Clock(0),
        ancestors=hierarchy.lines(labels.names),
        seconds=seconds,
        asked=asked,
    )
    p = model.predict_proba(x).astype(np.float64)
    entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
    unknown = labels.rows(slice(None)) == 0
    worth = entropy.copy()
    for i in range(len(x)):
        worth[i, 0] += (1 - p[i, 0]) * entropy[i, 1] * unknown[i, 1]
        worth[i, 1] += p[i, 1] * entropy[i, 0] * unknown[i, 0]
    able = [(i, j) for i, j in zip(*np.nonzero(unknown), strict=True) if (i, j) not in asked]
    best = sorted(able, key=lambda entry: -worth[entry] / seconds[entry[1]])[:25]
    assert list(zip(found.rows.tolist(), found.columns.tolist(), strict=True)) == [(int(i), int(j)) for i, j in best]
    np.testing.assert_allclose(found.value, [worth[e] / seconds[e[1]] for e in best], rtol=1e-4)
    np.testing.assert_allclose(found.probability, [p[e] for e in best], rtol=1e-4)


def test_bundles_are_items_of_which_several_labels_are_worth_asking() -> None:
    found = made([0, 1, 1, 2, 2, 2, 3], [0, 0, 1, 1, 2, 3, 0], [9.0, 2.0, 3.0, 1.0, 2.0, 1.5, 1.0])
    picked = bundle_by_item(found, 10, [])
    assert list(zip(picked.rows.tolist(), picked.columns.tolist(), strict=True)) == [
        (1, 1),
        (1, 0),
        (2, 2),
        (2, 3),
        (2, 1),
    ]
    below = bundle_by_item(
        found, 10, ABOVE
    )  # of item 1 only the better of a label and one above it, which is no bundle
    assert below.rows.tolist() == [2, 2, 2]
    assert bundle_by_item(found, 3, []).rows.tolist() == [1, 1, 2]
    assert bundle_by_item(found, 10, [], size=2).rows.tolist() == [1, 1, 2, 2]


def test_joined_ones_are_there_once() -> None:
    found = concatenate(made([0, 1], [0, 0], [1.0, 2.0]), made([1, 2], [0, 0], [5.0, 6.0]))
    assert found.rows.tolist() == [0, 1, 2]
    assert found.value.tolist() == [1.0, 2.0, 6.0]
