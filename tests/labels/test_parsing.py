"""The door of Labels: what is accepted with which meaning, and what is refused with which words."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch

from partly.errors import LabelError
from partly.labels import Labels, as_labels
from partly.labels.parsing import CONSTRUCTORS

NAN = float("nan")
NAMES = ("from_nan", "from_ternary", "from_positives", "from_full")


def objects(rows: list[list[Any]]) -> np.ndarray[Any, Any]:
    result = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            result[i, j] = value
    return result


def twice(format: str) -> Any:
    """A sparse matrix that says entry (0, 1) both yes and no."""
    if format == "coo":
        return sp.coo_array((np.array([1, -1]), ([0, 0], [1, 1])), shape=(2, 3))
    made = {"csr": sp.csr_array, "csc": sp.csc_array}[format]
    ends = [0, 2, 2] if format == "csr" else [0, 0, 2, 2]
    return made((np.array([1, -1]), np.array([1, 1] if format == "csr" else [0, 0]), np.array(ends)), shape=(2, 3))


ACCEPTED: dict[str, tuple[Callable[[Any], Labels], Any, list[list[int]]]] = {
    "lists": (Labels.from_full, [[1, 0], [0, 1]], [[1, -1], [-1, 1]]),
    "None in lists": (Labels.from_nan, [[1, None], [0, True]], [[1, 0], [-1, 1]]),
    "objects": (Labels.from_nan, objects([[1, pd.NA], [np.float32("nan"), 0.0]]), [[1, 0], [0, -1]]),
    "objects, ternary": (Labels.from_ternary, objects([[-1, np.int8(1)], [0, np.True_]]), [[-1, 1], [0, 1]]),
    "bool": (Labels.from_full, np.array([[True, False]]), [[1, -1]]),
    "bool, positives": (Labels.from_positives, np.array([[True, False]]), [[1, 0]]),
    "unsigned": (Labels.from_ternary, np.array([[1, 0]], np.uint8), [[1, 0]]),
    "float16": (Labels.from_nan, np.array([[1, 0, NAN]], np.float16), [[1, -1, 0]]),
    "float32": (Labels.from_nan, np.array([[1, 0, NAN]], np.float32), [[1, -1, 0]]),
    "Fortran order": (Labels.from_ternary, np.asfortranarray([[1, -1, 0], [0, 1, 1]]), [[1, -1, 0], [0, 1, 1]]),
    "masked": (Labels.from_nan, np.ma.array([[1, 0, 0]], mask=[[0, 0, 1]]), [[1, -1, 0]]),
    "masked objects": (Labels.from_nan, np.ma.array(objects([[1, "x"]]), mask=[[0, 1]]), [[1, 0]]),
    "mask of nothing": (Labels.from_ternary, np.ma.array([[1, -1]]), [[1, -1]]),
    "torch": (Labels.from_ternary, torch.tensor([[1, -1, 0]], dtype=torch.int8), [[1, -1, 0]]),
    "torch with gradient": (Labels.from_nan, torch.tensor([[1.0, NAN]], requires_grad=True), [[1, 0]]),
    "pandas nullable": (
        Labels.from_nan,
        pd.DataFrame(
            {
                "a": pd.array([1, None], dtype="Int8"),
                "b": pd.array([True, None], dtype="boolean"),
                "c": pd.array([0.0, None], dtype="Float32"),
                "d": pd.array([1, None], dtype="int8[pyarrow]"),
                "e": pd.array([False, None], dtype="bool[pyarrow]"),
            }
        ),
        [[1, 1, -1, 1, -1], [0, 0, 0, 0, 0]],
    ),
    "pandas objects": (
        Labels.from_nan,
        pd.DataFrame({"a": pd.Series([1, None], dtype=object), "b": pd.Series([1, 0], dtype="category")}),
        [[1, 1], [0, -1]],
    ),
    "pandas sparse": (Labels.from_nan, pd.DataFrame({"a": pd.arrays.SparseArray([1, 0, NAN])}), [[1], [-1], [0]]),
    "Arrow": (
        Labels.from_nan,
        pa.table({"a": pa.array([1, None], pa.int8()), "b": [False, None], "c": pa.array([None, None])}),
        [[1, -1, 0], [0, 0, 0]],
    ),
    "Arrow in chunks": (
        Labels.from_nan,
        pa.concat_tables([pa.table({"a": [1]}), pa.table({"a": [0]})]),
        [[1], [-1]],
    ),
    "Arrow batch": (Labels.from_nan, pa.record_batch({"a": [1, None]}), [[1], [0]]),
    "sparse": (Labels.from_ternary, sp.csr_array(np.array([[0, -1], [1, 0]])), [[0, -1], [1, 0]]),
    "sparse, stored zeros": (
        Labels.from_ternary,
        sp.csr_array((np.array([1, 0, -1]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3)),
        [[0, 0, 1], [0, -1, 0]],
    ),
    "sparse bool": (Labels.from_positives, sp.csr_array(np.array([[True, False]])), [[1, 0]]),
    "sparse full": (Labels.from_full, sp.csr_array(np.array([[1, 0], [0, 0]])), [[1, -1], [-1, -1]]),
    "words": (Labels.from_nan, [["yes", "No", "?"], ["Y", "n", "NA"], ["TRUE", "false", " "]], [[1, -1, 0]] * 3),
    "numbers as text": (
        Labels.from_nan,
        pd.DataFrame({"a": ["1", "0", ""], "b": ["1.0", "0.0", "nan"]}),
        [[1, 1], [-1, -1], [0, 0]],
    ),
    "words, full": (Labels.from_full, [["yes", "no"]], [[1, -1]]),
    "words, ternary": (Labels.from_ternary, [["yes", "no", "0", "-1"]], [[1, -1, 0, -1]]),
    "categories": (Labels.from_nan, pd.DataFrame({"a": pd.Categorical(["yes", None, "no"])}), [[1], [0], [-1]]),
    "polars": (
        Labels.from_nan,
        pl.DataFrame({"a": ["yes", "no", None], "b": [1.0, 0.0, None], "c": [True, False, None]}),
        [[1, 1, 1], [-1, -1, -1], [0, 0, 0]],
    ),
    "polars categories": (
        Labels.from_nan,
        pl.DataFrame({"a": pl.Series(["no", "yes", None, "no"], dtype=pl.Categorical)}),
        [[-1], [1], [0], [-1]],
    ),
    "own spellings": (
        lambda a: Labels.from_nan(a, missing=["not checked", -9]),
        objects([["yes", "Not checked"], [-9, 0]]),
        [[1, 0], [0, -1]],
    ),
    "own number": (lambda a: Labels.from_nan(a, missing=[-1]), np.array([[1, -1], [0, 1]]), [[1, 0], [-1, 1]]),
    "own number, sparse": (
        lambda a: Labels.from_nan(a, missing=[-1]),
        sp.csr_array(np.array([[1, -1], [0, 1]])),
        [[1, 0], [-1, 1]],
    ),
    "sparse nan": (Labels.from_nan, sp.csr_array(np.array([[1, NAN], [0, 0]])), [[1, 0], [-1, -1]]),
    "no items": (Labels.from_full, np.zeros((0, 3)), []),
    "no labels": (Labels.from_full, np.zeros((2, 0)), [[], []]),
    "sparse, no items": (Labels.from_ternary, sp.csr_array((0, 3), dtype=np.int8), []),
    "sparse, no labels": (Labels.from_ternary, sp.csr_array((2, 0), dtype=np.int8), [[], []]),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_with_a_stated_meaning(case: str) -> None:
    made, values, expected = ACCEPTED[case]
    labels = made(values)
    assert labels.rows(slice(None)).tolist() == expected
    assert labels.shape == tuple(values.shape if hasattr(values, "shape") else np.shape(expected))


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_sparse_format_stays_sparse_where_absent_means_unknown(format: str, kind: str) -> None:
    made = sp.csr_array if kind == "array" else sp.csr_matrix
    values = made(np.array([[1, 0, 0], [0, 0, 1]], dtype=np.float32)).asformat(format)
    for labels in (Labels.from_positives(values), Labels.from_ternary(values)):
        assert labels.sparse
        assert labels.rows([0, 1]).tolist() == [[1, 0, 0], [0, 0, 1]]


REFUSED: dict[str, tuple[Callable[[], Labels], list[str]]] = {
    "-1 in y": (lambda: as_labels(np.array([[1, -1], [0, 1]])), ["y takes", "item 0, label '1': -1", CONSTRUCTORS]),
    "-100 in y": (lambda: as_labels([[1.0, -100.0]]), ["1 entries", "item 0, label '1': -100", CONSTRUCTORS]),
    "-1 beside NaN in y": (lambda: as_labels([[NAN, -1.0]]), ["item 0, label '1': -1", CONSTRUCTORS]),
    "sparse -1 in y": (lambda: as_labels(sp.csr_array([[0, -1]])), ["item 0, label '1': -1", CONSTRUCTORS]),
    "no constructor": (lambda: Labels([[1, 0]]), ["guess", CONSTRUCTORS]),
    "-1, from_nan": (lambda: Labels.from_nan([[-1]]), ["Labels.from_nan takes 1 yes, 0 no, NaN unknown", ": -1"]),
    "-1, from_full": (lambda: Labels.from_full([[-1]]), ["Labels.from_full takes 1 yes, 0 no;", CONSTRUCTORS]),
    "-1, from_positives": (lambda: Labels.from_positives([[-1]]), ["takes 1 yes, 0 unknown;", CONSTRUCTORS]),
    "2, from_ternary": (lambda: Labels.from_ternary([[2]]), ["takes 1 yes, -1 no, 0 unknown;", ": 2"]),
    "255 as -1": (lambda: Labels.from_ternary(np.array([[255]], np.uint8)), [": 255"]),
    "NaN, from_ternary": (lambda: Labels.from_ternary([[NAN]]), [": NaN (missing)", CONSTRUCTORS]),
    "NaN, from_full": (lambda: Labels.from_full([[NAN]]), [": NaN (missing)", CONSTRUCTORS]),
    "masked, from_ternary": (
        lambda: Labels.from_ternary(np.ma.array([[1, -1]], mask=[[0, 1]])),
        ["item 0, label '1': NaN (missing)", CONSTRUCTORS],
    ),
    "masked, from_positives": (
        lambda: Labels.from_positives(np.ma.array([[1, 0]], mask=[[1, 0]])),
        ["item 0, label '0': NaN (missing)"],
    ),
    "null, from_full": (lambda: Labels.from_full(pa.table({"a": [True, None]})), ["item 1, label 'a': NaN (missing)"]),
    "inf": (lambda: Labels.from_nan([[np.inf, -np.inf]]), ["2 entries", ": inf", ": -inf"]),
    "0.5": (lambda: Labels.from_nan([[0.5]]), [": 0.5"]),
    "nearly 1": (lambda: Labels.from_nan(pa.table({"a": [1.00000001]})), [": 1.00000001"]),
    "a large number": (lambda: Labels.from_nan(pa.table({"a": [2**60 + 1]})), [str(2**60 + 1)]),
    "a number beyond floats": (lambda: Labels.from_full([[10**400]]), [": 1000000"]),
    "text": (lambda: Labels.from_full([["x", "-"]]), ["item 0, label '0': 'x'", "2 entries"]),
    "text in a table": (
        lambda: Labels.from_nan(pd.DataFrame({"cat": ["1", "-"]})),
        ["item 1, label 'cat': '-'", "missing=['-']"],
    ),
    "Arrow text": (lambda: Labels.from_nan(pa.table({"cat": ["none", None]})), ["item 0, label 'cat': 'none'"]),
    "a word for unknown, from_full": (lambda: Labels.from_full([["yes", "?"]]), ["item 0, label '1': '?'"]),
    "no, from_positives": (lambda: Labels.from_positives([["yes", "no"]]), ["item 0, label '1': 'no'"]),
    "unknown, from_ternary": (lambda: Labels.from_ternary([["1", "NA"]]), ["item 0, label '1': 'NA'"]),
    "values that are one number": (lambda: Labels.from_entries(["a"], ["cat"], 1), ["values must be a list", "got 1"]),
    "items that are one number": (lambda: Labels.from_entries(1, ["cat"], [1]), ["items must be a list", "got 1"]),
    "labels that are one text": (lambda: Labels.from_entries(["a"], "cat", [1]), ["labels must be a list", "'cat'"]),
    "decimal": (lambda: Labels.from_full([[Decimal(1)]]), ["Decimal('1')"]),
    "lists inside": (lambda: Labels.from_nan(objects([[1, [1, 2]]])), ["item 0, label '1': [1, 2]"]),
    "complex": (lambda: Labels.from_full(np.array([[1j]])), ["must be numbers", "complex128"]),
    "dates": (lambda: Labels.from_full(np.array([["2020-01-01"]], "M8[D]")), ["must be numbers", "datetime64"]),
    "date column": (
        lambda: Labels.from_nan(pd.DataFrame({"a": [1], "when": pd.to_datetime(["2020-01-01"])})),
        ["label 'when'", "datetime64"],
    ),
    "ragged": (lambda: Labels.from_full([[1], [1, 0]]), ["Labels.from_full", "inhomogeneous"]),
    "scalar": (lambda: Labels.from_full(1), ["items x labels", "0 dimensions"]),
    "one dimension": (lambda: Labels.from_full([1, 0]), ["items x labels", "1 dimensions", "(2,)"]),
    "three dimensions": (lambda: Labels.from_full(np.zeros((2, 3, 4))), ["3 dimensions", "(2, 3, 4)"]),
    "a series": (lambda: Labels.from_full(pd.Series([1, 0])), ["1 dimensions"]),
    "sparse, one dimension": (lambda: Labels.from_positives(sp.coo_array(np.array([1, 0]))), ["(2,)"]),
    "sparse complex": (lambda: Labels.from_positives(sp.csr_array(np.array([[1j]]))), ["complex128"]),
    "sparse places": (
        lambda: Labels.from_positives(sp.csr_array(np.array([[1, 0], [0, 7], [-1, 0]])), names=["a", "b"]),
        ["2 entries", "item 1, label 'b': 7", "item 2, label 'a': -1"],
    ),
    "torch sparse": (lambda: Labels.from_ternary(torch.eye(2).to_sparse()), ["Tensor", "to_dense"]),
    "labels again": (lambda: Labels.from_full(Labels.from_full([[1]])), ["to_nan"]),
    "ids and names shown": (
        lambda: Labels.from_full([[1, 5]], names=iter(["a", "b\n"]), ids=iter(["x"])),
        ["item 'x', label 'b\\n': 5"],
    ),
    "too few names": (lambda: Labels.from_full([[1, -1]], names=["a"]), ["1 names for 2 labels"]),
    "too many ids": (lambda: Labels.from_full([[1]], ids=["a", "b"]), ["2 ids for 1 items"]),
    "names as one text": (lambda: Labels.from_full([[1, 0]], names="ab"), ["'ab'", "list"]),
    "blank name": (lambda: Labels.from_full([[1, 0]], names=["a", " "]), ["empty or missing name", "label 1"]),
    "missing name": (lambda: Labels.from_full([[1, 0]], names=["a", NAN]), ["empty or missing name", "label 1"]),
    "missing id": (lambda: Labels.from_full([[1], [0]], ids=["a", None]), ["empty or missing id", "item 1"]),
    "bytes that are no text": (lambda: Labels.from_full([[1]], ids=[b"\xff"]), ["empty or missing id"]),
    "same name": (lambda: Labels.from_full([[1, 0]], names=["a", "a"]), ["'a' and 'a'"]),
    "same name but for case": (lambda: Labels.from_full([[1, 0]], names=["Cat", "cat"]), ["'Cat' and 'cat'"]),
    "same name but for spaces": (lambda: Labels.from_full([[1, 0]], names=["cat", "cat "]), ["'cat' and 'cat '"]),
    "same name but for Unicode": (
        lambda: Labels.from_full([[1, 0]], names=["caf\u00e9", "cafe\u0301"]),
        ["differ by more than"],
    ),
    "same column name": (lambda: Labels.from_nan(pd.DataFrame([[1, 0]], columns=["a", "a"])), ["'a' and 'a'"]),
    "same id": (lambda: Labels.from_full([[1], [0]], ids=["a", "a"]), ["1 item ids", "'a'"]),
    "same id, other type": (lambda: Labels.from_full([[1], [0]], ids=[1, "1"]), ["1 item ids", "'1'"]),
    "same index": (lambda: Labels.from_nan(pd.DataFrame({"a": [1, 0]}, index=["x", "x"])), ["1 item ids", "'x'"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_place_value_and_remedy(case: str) -> None:
    made, words = REFUSED[case]
    with pytest.raises(LabelError) as caught:
        made()
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
def test_a_sparse_matrix_that_contradicts_itself_does_not_become_unknown(format: str) -> None:
    with pytest.raises(LabelError, match="1 values for entries that have one already"):
        Labels.from_ternary(twice(format))


def test_all_problems_come_in_one_message_but_not_all_places() -> None:
    with pytest.raises(LabelError) as caught:
        Labels.from_full(np.full((100, 3), 7))
    text = str(caught.value)
    assert "300 entries" in text
    assert text.count(": 7\n") == 5
    assert "... and 295 more" in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("made", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_later_writes_of_the_caller_change_nothing(name: str, made: Any) -> None:
    a = made(np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    labels = getattr(Labels, name)(a)
    before = labels.digest()
    data = a.data if sp.issparse(a) else a
    data[:] = -data
    if sp.issparse(a):
        a.indices[:] = 0
    assert labels.digest() == before


def test_reading_does_not_change_what_the_caller_holds() -> None:
    a = sp.csr_array((np.array([1.0, 0.0, -1.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    Labels.from_ternary(a)
    assert a.indices.tolist() == [2, 0, 1]
    assert a.data.tolist() == [1, 0, -1]
    a.data[0] = 5  # still writable


def test_names_and_ids_of_a_table() -> None:
    table = pd.DataFrame({"a": [1, 0], 7: [0, 1]}, index=["x", "y"])
    assert Labels.from_full(table).names == ("a", "7")
    assert Labels.from_full(table).ids == ("x", "y")
    assert Labels.from_full(table, names=["p", "q"], ids=[1, 2]).names == ("p", "q")
    assert Labels.from_full(table, names=["p", "q"], ids=[1, 2]).ids == ("1", "2")
    assert Labels.from_full(pa.table({"u": [1], "v": [0]})).names == ("u", "v")


def test_the_index_of_a_slice_of_a_table_is_kept() -> None:
    table = pd.DataFrame({"a": [1, 0, 1]})
    assert Labels.from_full(table).ids == ("0", "1", "2")
    assert Labels.from_full(table.iloc[1:]).ids == ("1", "2")
    assert Labels.from_full(table.iloc[::2]).ids == ("0", "2")


def test_a_table_is_never_widened_to_floats_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from partly.labels import parsing as door

    seen: list[int] = []
    read = door.array
    monkeypatch.setattr(door, "array", lambda a, where: seen.append(read(a, where).ndim) or read(a, where))
    Labels.from_nan(pa.table({name: [1, None] for name in "abc"}))
    assert seen == [1, 1, 1]
