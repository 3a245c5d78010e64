"""Rows of a table: what kind each column is, from types and from text, and what is refused by name."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from partly.errors import DataError
from partly.items import TableRows, as_frame, frame_rows, is_mixed, matrix_rows, prepare_for_training
from partly.items.table_rows import parse_column

NAN = float("nan")
DAY = datetime.date(2020, 1, 2)  # 18263 days after 1970-01-01


def typed(values: list[Any], kind: Any = None) -> tuple[str, list[Any]]:
    column = parse_column("c", pa.array(values, kind))
    plain = [None if value is None or value != value else value for value in column.values.tolist()]
    return column.kind, plain


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, None, 3], pa.int64(), ("number", [1, None, 3])),
        ([0.5, NAN], pa.float32(), ("number", [0.5, None])),
        ([True, None, False], None, ("number", [1, None, 0])),
        ([None, None], None, ("number", [None, None])),
        ([DAY, None], None, ("date", [18263, None])),
        ([datetime.datetime(2020, 1, 2, 12)], None, ("date", [18263.5])),
        ([datetime.timedelta(hours=6)], None, ("duration", [0.25])),
        (["a", None], pa.dictionary(pa.int8(), pa.string()), ("category", ["a", None])),
        (["1", "2"], pa.dictionary(pa.int8(), pa.string()), ("category", ["1", "2"])),
        (["a", "b"], pa.large_string(), ("category", ["a", "b"])),
        (["1", " 2.5 ", "NA", "?", "", "nan"], None, ("number", [1, 2.5, None, None, None, None])),
        (["True", "false", "n/a"], None, ("number", [1, 0, None])),
        (["2020-01-02", None, "2020-01-02T12:00:00"], None, ("date", [18263, None, 18263.5])),
        (["0 days 06:00:00", "-1 days +12:00:00", "12:00:00.0"], None, ("duration", [0.25, -0.5, 0.5])),
        (["red", "2020-01-02", "none"], None, ("category", ["red", "2020-01-02", None])),
    ],
)
def test_the_kind_of_a_column(values: list[Any], kind: Any, expected: tuple[str, list[Any]]) -> None:
    assert typed(values, kind) == expected


def test_numbers_with_a_few_words_are_not_guessed_at() -> None:
    with pytest.raises(DataError, match=r"'c': most cells are numbers, but not 'n.d.'"):
        typed(["1", "2", "3", "n.d."])


def test_cells_that_are_no_values_are_refused_by_name() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "lists": [[1], [2]], "mixed": [1, "a"]})
    with pytest.raises(DataError, match=r"(?s)cannot be encoded: 2\n  'lists': cells of the type list.*\n  'mixed': "):
        frame_rows(table)


@pytest.mark.parametrize(
    ("column", "mixed"),
    [
        ([1, 2], False),
        ([True, False], False),
        ([1.0, NAN], True),
        (["a", "b"], True),
        (pd.Categorical(["a", "b"]), True),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), True),
        (pd.array([1, None], "Int64"), True),
    ],
)
def test_which_frames_are_plain_numbers(column: Any, mixed: bool) -> None:
    assert is_mixed(pd.DataFrame({"a": [0.5, 1.5], "b": column})) is mixed
    assert not is_mixed(np.array([[NAN]]))


def test_polars_and_arrow_become_the_same_frame() -> None:
    table = pd.DataFrame({"a": [1.5, NAN], "c": ["x", None], "d": pd.to_datetime(["2020-01-01", None])})
    wanted = prepare_for_training(frame_rows(table)).take(slice(None)).tolist()
    for other in (pl.from_pandas(table), pa.Table.from_pandas(table)):
        assert prepare_for_training(frame_rows(as_frame(other))).take(slice(None)).tolist() == wanted


# ---------------------------------------------------------------- as items


def table() -> TableRows:
    return frame_rows(pd.DataFrame({"a": [1.0, NAN, 3.0, 50.0], "c": ["x", "y", "x", "z"]}))


def test_training_encodes_by_its_own_rows_alone() -> None:
    some = prepare_for_training(table()[:3])
    assert some.names == ("a", "a=missing", "c=x", "c=y")
    assert some.take(slice(None)).tolist() == [[1, 0, 1, 0], [2, 1, 0, 1], [3, 0, 1, 0]]
    assert table()[3:].encode_as(some.encoding).take(slice(None)).tolist() == [[50, 0, 0, 0]]


def test_by_itself_it_is_encoded_by_all_rows() -> None:
    rows = table()[np.array([1])]
    assert rows.names == table().names
    assert rows.take(slice(None)).tolist() == table().take(slice(1, 2)).tolist()


def test_columns_are_matched_by_name() -> None:
    encoding = prepare_for_training(table()).encoding
    other = frame_rows(pd.DataFrame({"c": ["y"], "a": [7.0]}))
    assert other.encode_as(encoding).take(slice(None)).tolist() == [[7, 0, 0, 1, 0]]
    with pytest.raises(DataError, match=r"(?s)missing, 1:\n  'c'.*not in training, 1:\n  'd'"):
        frame_rows(pd.DataFrame({"a": [1.0], "d": ["y"]})).encode_as(encoding)


def test_a_matrix_with_gaps_is_a_table_and_others_are_not() -> None:
    rows = matrix_rows(np.array([[1.0, NAN], [3.0, 4.0]]))
    assert isinstance(rows, TableRows)
    assert prepare_for_training(rows).take(slice(None)).tolist() == [[1, 4, 1], [3, 4, 0]]
    assert not isinstance(matrix_rows(np.array([[1.0]])), TableRows)


def test_what_needs_encoding_is_named() -> None:
    with pytest.raises(DataError, match="missing values: 2\n  'a': 1 missing\n  'c': category\n"):
        table().refuse()


def test_the_digest_is_of_values_and_of_how_they_are_encoded() -> None:
    renamed = frame_rows(pd.DataFrame({"a": [1.0, NAN, 3.0, 50.0], "c": ["x", "y", "x", "w"]}))
    swapped = frame_rows(pd.DataFrame({"a": [1.0, NAN, 3.0, 5.0], "c": ["x", "y", "x", "z"]}))
    assert len({prepare_for_training(one).digest() for one in (table(), table(), renamed, swapped)}) == 3
