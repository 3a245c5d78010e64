"""From columns to numbers: each kind by hand, what is unseen or missing, and that JSON holds all of it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from partly.errors import DataError
from partly.items.encoding import MAX_CATEGORIES, Column, Encoding, is_encoding, warn_of_words

NONE = float("nan")


def number(*values: float, kind: Any = "number", name: str = "n") -> Column:
    return Column(name, kind, np.array(values, np.float64))


def words(*values: str | None, name: str = "c") -> Column:
    return Column(name, "category", np.array(values, object))


def encoded(trained: Column, other: Column | None = None) -> dict[str, list[float]]:
    """By name, what becomes of one column."""
    made = Encoding.fit([trained])
    return dict(zip(made.names, made.apply([other or trained]).T.tolist(), strict=True))


def test_numbers_stay_as_they_are() -> None:
    assert encoded(number(1, 2.5, -3)) == {"n": [1, 2.5, -3]}


def test_missing_numbers_become_the_median_and_are_marked() -> None:
    assert encoded(number(1, NONE, 2, 10)) == {"n": [1, 2, 2, 10], "n=missing": [0, 1, 0, 0]}


def test_missing_values_that_training_did_not_have_are_filled_in() -> None:
    assert encoded(number(1, 2, 10), number(NONE, 5)) == {"n": [2, 5]}


def test_a_column_without_any_value_is_zero() -> None:
    assert encoded(number(NONE, NONE)) == {"n": [0, 0], "n=missing": [1, 1]}


def test_dates_are_days_since_the_first_of_training() -> None:
    assert encoded(number(18262, 18263.5, kind="date"), number(18261, kind="date")) == {"n": [-1]}
    assert encoded(number(7, NONE, 9, kind="date")) == {"n": [0, 1, 2], "n=missing": [0, 1, 0]}


def test_durations_are_days() -> None:
    assert encoded(number(0.5, 2, kind="duration")) == {"n": [0.5, 2]}


def test_categories_are_columns_of_zero_and_one() -> None:
    found = encoded(words("b", "a", None, "b"))
    assert found == {"c=a": [0, 1, 0, 0], "c=b": [1, 0, 0, 1], "c=missing": [0, 0, 1, 0]}


def test_an_unseen_category_is_none_of_those_seen() -> None:
    assert encoded(words("a", "b"), words("z", "a")) == {"c=a": [0, 1], "c=b": [0, 0]}


def test_rare_categories_and_unseen_ones_share_a_column_where_there_are_many() -> None:
    many = [f"w{k:02}" for k in range(MAX_CATEGORIES + 5)]
    found = encoded(words(*many, *many[5:]), words(many[0], many[7], "new", None))
    assert len(found) == MAX_CATEGORIES + 1
    assert "c=w00" not in found  # one of five that occur once
    assert found["c=other"] == [1, 0, 1, 0]
    assert found["c=w07"] == [0, 1, 0, 0]


def test_numbers_can_be_names_of_categories_and_blank_columns_anything() -> None:
    assert encoded(words("12", "x"), number(12, NONE, 3.5)) == {"c=12": [1, 0, 0], "c=x": [0, 0, 0]}
    assert encoded(words("a", "b"), number(NONE)) == {"c=a": [0], "c=b": [0]}
    assert encoded(number(1, 2, 6), words(None, None)) == {"n": [2, 2]}


@pytest.mark.parametrize(
    ("trained", "other", "told"),
    [
        (number(1), words("a", name="n"), "'n': category here, number in training"),
        (number(1, kind="date"), number(2), "'n': number here, date in training"),
        (words("a"), number(2, kind="date", name="c"), "'c': date here, category in training"),
    ],
)
def test_columns_of_another_kind_are_refused_by_name(trained: Column, other: Column, told: str) -> None:
    with pytest.raises(DataError, match=told):
        encoded(trained, other)


def test_names_that_would_be_there_twice_are_refused() -> None:
    with pytest.raises(DataError, match="'c=a'"):
        Encoding.fit([words("a"), number(1, name="c=a")])


def test_words_that_look_like_ids_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="'c' has 40 different values in 40 items"):
        warn_of_words(words(*map(str, range(40))))
    warn_of_words(words(*map(str, range(40)), *["a"] * 60))


# ---------------------------------------------------------------- JSON


def made() -> Encoding:
    return Encoding.fit([number(1, NONE), words("a", None), number(3, 4, kind="date", name="d")])


def test_from_json_reads_what_to_json_writes() -> None:
    plain = json.loads(json.dumps(made().to_json()))
    assert is_encoding(plain, len(made().names))
    assert Encoding.from_json(plain) == made()
    assert Encoding.from_json(plain).digest() == made().digest()


def test_the_digest_is_of_everything() -> None:
    digests = {
        Encoding.fit([column]).digest() for column in (words("a"), words("b"), number(1), number(2), number(NONE))
    }
    assert len(digests) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "code"},
        {"missing": "yes"},
        {"fill": "1"},
        {"fill": float("inf")},
        {"categories": [1]},
        {"name": 3},
        {"more": 1},
    ],
)
def test_forged_json_is_told(change: dict[str, Any]) -> None:
    plain = made().to_json()
    plain["columns"][1] |= change
    assert not is_encoding(plain, len(made().names))


@pytest.mark.parametrize("value", [None, [], {}, {"columns": 3, "named": True}, {"columns": [], "named": True}])
def test_json_of_another_shape_is_told(value: Any) -> None:
    assert not is_encoding(value, 5)
    assert not is_encoding(made().to_json(), 3)
