"""Scores of all entries: from the cache, in memory, or computed on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partly import Labels, items
from partly.engine import TrainConfig, teaching
from partly.teachers import LabelNames, Scores, Teacher, score_matrix
from partly.teachers.contract import Block, Vocabulary, ids_of
from partly.teachers.score_matrix import LazyScores, open_scores

NAMES = ("cat", "dog")
X = items.features(np.arange(20.0).reshape(10, 2))
EXPECTED = np.stack([np.arange(10), -np.arange(10)], axis=1).astype(np.float32)


class Slow(Teacher):
    """Score items by their first feature, and count them; fail once."""

    def __init__(self, version: int, fails_at: int = -1) -> None:
        self.version, self.fails_at, self.scored = version, fails_at, 0

    def identity(self) -> dict[str, Any]:
        return {"kind": "slow", "version": self.version}

    def score_blocks(self, items: Any, labels: Vocabulary) -> Iterator[Block]:
        for value in items.take(slice(None)).numpy()[:, 0] / 2:
            if value == self.fails_at:
                self.fails_at = -1
                raise OSError("no connection")
            self.scored += 1
            yield np.array([[value, -value]], np.float32)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_matrix, "ITEMS_PER_CACHED_BLOCK", 3)


def test_a_teacher_that_fails_loses_only_the_last_block(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path))
    teacher = Slow(1, fails_at=7)
    with pytest.raises(OSError, match="no connection"):
        open_scores(teacher, X, NAMES)
    assert teacher.scored == 7
    np.testing.assert_array_equal(open_scores(teacher, X, NAMES), EXPECTED)
    assert teacher.scored == 7 + 4  # items 6 to 9
    np.testing.assert_array_equal(open_scores(Slow(1), X, NAMES), EXPECTED)


def test_scores_are_cached_by_items_names_ids_and_identity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path))
    teacher = Slow(1)
    named = Labels.from_nan(np.full((10, 2), np.nan), names=NAMES, ids=[f"i{k}" for k in range(10)])
    for x, labels in ((X, NAMES), (X[np.arange(9)], NAMES), (X, ("cow", "dog")), (X, named), (X, NAMES)):
        open_scores(teacher, x, labels)
    assert teacher.scored == 10 + 9 + 10 + 10
    other = Slow(2)
    open_scores(other, X, NAMES)
    assert other.scored == 10


def test_a_teacher_without_identity_is_not_cached() -> None:
    class Rule(Slow):
        identity = Teacher.identity

    teacher = Rule(1)
    open_scores(teacher, X, NAMES)
    np.testing.assert_array_equal(open_scores(teacher, X, NAMES), EXPECTED)
    assert teacher.scored == 20


def test_scores_on_request_are_those_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = EXPECTED.copy()
    matrix[2, 1], matrix[4, 0] = np.nan, np.inf
    teacher = Scores(matrix)
    whole = open_scores(teacher, X, NAMES)
    monkeypatch.setattr(score_matrix, "MAX_IN_MEMORY", 1)
    lazy = open_scores(teacher, X, NAMES)
    assert isinstance(lazy, LazyScores)
    assert (lazy.shape, len(lazy)) == ((10, 2), 10)
    assert np.isnan(whole[4, 0])
    for rows in (slice(None), slice(3, 6), np.array([8, 2, 4])):
        np.testing.assert_array_equal(lazy[rows], whole[rows])


def test_rows_of_a_long_file_are_found_by_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("item,label,score\n" + "".join(f"i{k},dog,{k}\n" for k in range(9, -1, -2)))
    labels = Labels.from_nan(np.full((10, 2), np.nan), names=NAMES, ids=[f"i{k}" for k in range(10)])
    monkeypatch.setattr(score_matrix, "MAX_IN_MEMORY", 1)
    lazy = open_scores(Scores(path), X, labels)
    expected = np.full((10, 2), np.nan)
    expected[1::2, 1] = np.arange(1, 10, 2)
    np.testing.assert_array_equal(lazy[slice(None)], expected)
    np.testing.assert_array_equal(lazy[np.array([7, 0])], expected[[7, 0]])


def test_a_teacher_gets_the_ids_of_the_items_it_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path))

    class ById(Slow):
        def score_blocks(self, items: Any, labels: Vocabulary) -> Iterator[Block]:
            ids = ids_of(labels)
            assert ids is not None
            yield np.array([[int(i[1:]), -int(i[1:])] for i in ids], np.float32)

    labels = Labels.from_nan(np.full((10, 2), np.nan), names=NAMES, ids=[f"i{k}" for k in range(10)])
    np.testing.assert_array_equal(open_scores(ById(3), X, labels), EXPECTED)


def test_scores_by_position_can_be_split_once_rows_have_ids() -> None:
    config = teaching.name_rows(TrainConfig(teacher=EXPECTED), [f"i{k}" for k in range(10)])
    part = Labels.from_nan(np.full((2, 2), np.nan), names=NAMES, ids=["i7", "i3"])
    (teacher,) = teaching.as_teachers(config.teacher)
    np.testing.assert_array_equal(teacher.scores(X[np.array([7, 3])], part), EXPECTED[[7, 3]])
    unchanged = TrainConfig(teacher="names")
    assert teaching.name_rows(unchanged, ["a"]) is unchanged


def test_silent_names_are_described() -> None:
    config = TrainConfig(teacher=LabelNames({"c1": "a ship"}))
    said = teaching.describe_silent_names(config, X, ["c1", "c2", "dog"])
    assert "1 of 3 label names are codes and get no score: c2" in said
    assert teaching.describe_silent_names(TrainConfig(), X, ["c1", "c2"]) == ""  # features have no names to compare
