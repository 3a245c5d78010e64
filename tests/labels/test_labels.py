"""Labels: what they say of themselves, that they never change, and the long form."""

# Long because every constructor, container and refusal has its own case.

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import KFold, cross_val_score

from partly.errors import LabelError
from partly.labels import Labels, as_labels, matrix

Z = np.array([[1, -1, 0], [0, 0, 0], [1, 1, -1], [0, -1, 0]], np.int8)
ternaries = hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=st.integers(-1, 1))
both = pytest.mark.parametrize("made", [np.array, sp.csr_array], ids=["dense", "sparse"])


def said(z: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """What is known, the slow way: (row, column, 1 or 0)."""
    return [(i, j, int(v == 1)) for i, row in enumerate(z) for j, v in enumerate(row) if v != 0]


@given(ternaries)
def test_dense_and_sparse_say_the_same(z: np.ndarray[Any, Any]) -> None:
    dense, sparse = Labels.from_ternary(z), Labels.from_ternary(sp.csr_array(z))
    assert sparse.sparse
    assert not dense.sparse
    assert dense == sparse
    assert dense.digest() == sparse.digest()
    assert hash(dense) == hash(sparse)
    for labels in (dense, sparse):
        assert list(zip(*(part.tolist() for part in labels.entries()), strict=True)) == said(z)
        assert [part.tolist() for part in labels.counts()] == [(z == 1).sum(0).tolist(), (z == -1).sum(0).tolist()]
        assert labels.known_per_item().tolist() == (z != 0).sum(1).tolist()
        np.testing.assert_array_equal(labels.rows(slice(None)), z)
        expected = [[{1: 1.0, -1: 0.0, 0: np.nan}[int(v)] for v in row] for row in z]
        np.testing.assert_array_equal(labels.to_nan(), np.array(expected, np.float32).reshape(z.shape))
    assert dense.summary() == sparse.summary()


@given(ternaries)
def test_every_way_in_leads_to_the_same_labels(z: np.ndarray[Any, Any]) -> None:
    labels = Labels.from_ternary(z)
    row, column, value = labels.entries()
    assert Labels.from_nan(labels.to_nan()) == labels
    assert as_labels(labels.to_nan()) == labels
    assert as_labels(labels) is labels
    assert Labels.from_entries(row, column, value, names=range(z.shape[1]), ids=range(len(z))) == labels
    assert Labels.from_positives(z == 1) == Labels.from_ternary(np.maximum(z, 0))
    assert Labels.from_full(z == 1) == Labels.from_ternary(np.where(z == 1, 1, -1))


@both
def test_boolean_matrices(made: Any) -> None:
    labels = Labels.from_ternary(made(Z))
    for part, expected in ((labels.known, Z != 0), (labels.positive, Z == 1), (labels.negative, Z == -1)):
        assert part.dtype == bool
        assert sp.issparse(part) == labels.sparse
        np.testing.assert_array_equal(part.toarray() if sp.issparse(part) else part, expected)


@both
def test_summary(made: Any) -> None:
    labels = Labels.from_ternary(made(Z), names=["a", "b", "c"])
    assert labels.summary() == {
        "items": 4,
        "labels": 3,
        "yes": 3,
        "no": 3,
        "unknown": 6,
        "known_share": 0.5,
        "items_with_nothing_known": 1,
        "items_wholly_known": 1,
        "labels_without_yes": ["c"],
        "labels_without_no": ["a"],
    }
    assert repr(labels).startswith("Labels(4 items x 3 labels: 3 yes, 3 no, 50.0% unknown")
    assert repr(labels).endswith("sparse)") == labels.sparse
    assert len(labels) == 4


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1)])
@both
def test_nothing_is_no_special_case(shape: tuple[int, int], made: Any) -> None:
    labels = Labels.from_ternary(made(np.zeros(shape, np.int8)))
    assert labels.shape == shape
    assert labels.summary()["known_share"] == 0
    assert [len(part) for part in labels.counts()] == [shape[1], shape[1]]
    assert labels.to_nan().shape == shape
    assert labels[:] == labels
    assert len(labels.digest()) == 64
    assert "100.0% unknown" in repr(labels)


def test_sparse_labels_hold_what_is_known_and_that_in_order() -> None:
    stored = sp.csr_array((np.array([1, 0, -1]), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    labels = Labels.from_ternary(stored)
    assert labels.ternary().nnz == 2
    assert [part.tolist() for part in labels.entries()] == [[0, 1], [2, 1], [1, 0]]
    unsorted = sp.csr_array((np.array([1, -1], np.int8), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    assert matrix.freeze(unsorted).indices.tolist() == [0, 2]


# -------------------------------------------------------------------- never changed


@both
def test_labels_cannot_be_changed(made: Any) -> None:
    labels = Labels.from_ternary(made(Z))
    for name in ("names", "_z", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(labels, name, None)
    z = labels.ternary()
    for part in (z.data, z.indices, z.indptr) if labels.sparse else (z,):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1
    before = labels.digest()
    if labels.sparse:  # the CSR object is the caller's own, the memory is not
        z.data = -z.data
        z.indices = z.indices[::-1].copy()
    labels.rows([0, 1])[:] = 0
    assert labels.digest() == before


@both
def test_copies_are_equal_and_as_immutable(made: Any) -> None:
    labels = Labels.from_ternary(made(Z), names=["a", "b", "c"], ids=["w", "x", "y", "z"])
    copies = [copy.copy(labels), copy.deepcopy(labels), clone(labels, safe=False)]
    copies.append(pickle.loads(pickle.dumps(labels)))  # noqa: S301  (joblib does this to pass them to its workers)
    for other in copies:
        assert other == labels
        assert other.sparse == labels.sparse
        assert not (other.ternary().data if labels.sparse else other.ternary()).flags.writeable


@both
def test_equality_sees_every_part(made: Any) -> None:
    labels = Labels.from_ternary(made(Z), names=["a", "b", "c"], ids=["w", "x", "y", "z"])
    others = [
        Labels.from_ternary(made(-Z), names=["a", "b", "c"], ids=["w", "x", "y", "z"]),
        Labels.from_ternary(made(Z), names=["a", "b", "d"], ids=["w", "x", "y", "z"]),
        Labels.from_ternary(made(Z), names=["a", "b", "c"], ids=["w", "x", "y", "v"]),
        Labels.from_ternary(made(Z), names=["a", "b", "c"]),
        Labels.from_ternary(made(Z[:3]), names=["a", "b", "c"], ids=["w", "x", "y"]),
    ]
    for other in others:
        assert labels != other
        assert labels.digest() != other.digest()
    assert labels != Z.tolist()


def test_ids_that_are_the_positions_are_no_other_labels() -> None:
    plain, counted = Labels.from_ternary(Z), Labels.from_ternary(Z, ids=range(4))
    assert plain.ids == counted.ids == ("0", "1", "2", "3")
    assert plain == counted
    assert plain.digest() == counted.digest()


def test_digest_and_equality_do_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = Labels.from_ternary(Z)
    before = labels.digest()
    monkeypatch.setattr(matrix, "BLOCK", 3)  # one item a block
    assert labels.digest() == before
    assert labels != Labels.from_ternary(np.vstack([Z[:3], Z[:1]]))


def test_names_may_be_any_text() -> None:
    names = ["<b>bold</b>", "new\nline", "rtl\u202e", "half \ud800", "quote'\""]
    labels = Labels.from_full([[1, 0, 1, 0, 1]], names=names)
    assert labels.names == tuple(names)
    assert len(labels.digest()) == 64


# -------------------------------------------------------------------- some items


@both
def test_some_items(made: Any) -> None:
    labels = Labels.from_ternary(made(Z), ids=["w", "x", "y", "z"])
    picks: list[tuple[Any, list[int]]] = [
        (slice(1, 3), [1, 2]),
        ([2, 0], [2, 0]),
        (np.array([True, False, True, False]), [0, 2]),
        ([-1], [3]),
        (2, [2]),
        (torch.tensor([3]), [3]),
        ([], []),
    ]
    for index, chosen in picks:
        part = labels[index]
        assert part.sparse == labels.sparse
        assert part.ids == tuple("wxyz"[i] for i in chosen)
        np.testing.assert_array_equal(part.rows(slice(None)), Z[np.array(chosen, int)])
        np.testing.assert_array_equal(labels.rows(index), Z[np.array(chosen, int)])


@both
@pytest.mark.parametrize("index", [[True], [0.5], "w", (0, 1), [[0, 1]], np.zeros((4, 3), bool), 4, [-5]])
def test_an_index_that_means_no_items_is_refused(made: Any, index: Any) -> None:
    labels = Labels.from_ternary(made(Z), ids=["w", "x", "y", "z"])
    with pytest.raises(IndexError):
        labels[index]
    with pytest.raises(IndexError):
        labels.rows(index)


def test_the_same_item_twice_would_be_two_items_with_one_id() -> None:
    assert Labels.from_ternary(Z)[[0, 0]].ids == ("0", "1")
    with pytest.raises(LabelError, match="more than once"):
        Labels.from_ternary(Z, ids=["w", "x", "y", "z"])[[0, 0]]


def test_no_array_without_saying_which() -> None:
    with pytest.raises(LabelError, match="to_nan"):
        np.asarray(Labels.from_ternary(Z))


class _CountsItems(BaseEstimator):
    def fit(self, X: Any, y: Labels) -> _CountsItems:
        self.items_ = len(y)
        return self

    def score(self, X: Any, y: Labels) -> float:
        assert isinstance(y, Labels)
        return self.items_ + len(y) / 10


@both
def test_scikit_learn_can_split_labels(made: Any) -> None:
    labels = Labels.from_ternary(made(Z), ids=["w", "x", "y", "z"])
    assert cross_val_score(_CountsItems(), np.zeros((4, 1)), labels, cv=KFold(2)).tolist() == [2.2, 2.2]


# -------------------------------------------------------------------- long form

ENTRIES = [("p", "cat", 1), ("q", "dog", 0), ("p", "dog", 0), ("r", "cat", 1)]
COLUMNS: dict[str, tuple[Any, Any, Any]] = {
    "lists": tuple(map(list, zip(*ENTRIES, strict=True))),
    "iterators": tuple(map(iter, zip(*ENTRIES, strict=True))),
    "NumPy": tuple(map(np.array, zip(*ENTRIES, strict=True))),
    "NumPy objects": tuple(np.array(part, dtype=object) for part in zip(*ENTRIES, strict=True)),
    "bytes": (np.array([b"p", b"q", b"p", b"r"]), ["cat", b"dog", "dog", "cat"], [True, False, False, True]),
    "Arrow": tuple(map(pa.array, zip(*ENTRIES, strict=True))),
    "Arrow in chunks": (
        pa.chunked_array([["p", "q"], ["p", "r"]]),
        pa.chunked_array([pa.array(["cat", "dog"]).dictionary_encode(), pa.array(["dog", "cat"]).dictionary_encode()]),
        pa.chunked_array([[True, False], [False, True]]),
    ),
    "pandas": (
        pd.Series(["p", "q", "p", "r"]),
        pd.Series(["cat", "dog", "dog", "cat"], dtype=pd.CategoricalDtype(["never", "dog", "cat"])),
        pd.Series([1, 0, 0, 1], dtype="Int8"),
    ),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_long_form(case: str) -> None:
    labels = Labels.from_entries(*COLUMNS[case])
    assert labels.names == ("cat", "dog")
    assert labels.ids == ("p", "q", "r")
    assert labels.ternary().tolist() == [[1, -1], [0, -1], [1, 0]]


def test_long_form_in_a_given_order() -> None:
    labels = Labels.from_entries(["p", "q"], ["cat", "dog"], [1, 0], names=["dog", "owl", "cat"], ids=["q", "z", "p"])
    assert labels.names == ("dog", "owl", "cat")
    assert labels.ids == ("q", "z", "p")
    assert labels.ternary().tolist() == [[-1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_words_of_any_type_are_texts() -> None:
    labels = Labels.from_entries(["a", 1, "1", 2.0], ["x"] * 4, [1, 0, 0, 1])
    assert labels.ids == ("a", "1", "2.0")
    assert Labels.from_entries(np.array([7, 5]), ["x", "x"], [1, 0]).ids == ("7", "5")
    assert Labels.from_entries(["no UTF-8 \ud800"], ["x"], [1]).ids == ("no UTF-8 \ud800",)


def test_nothing_said() -> None:
    assert Labels.from_entries([], [], []).shape == (0, 0)
    assert Labels.from_entries([], [], [], names=["a"], ids=["u", "v"]).ternary().tolist() == [[0], [0]]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 1)), max_size=30), st.booleans())
def test_long_form_against_a_slow_dictionary(entries: list[tuple[int, int, int]], sparse: bool) -> None:
    said: dict[tuple[int, int], set[int]] = {}
    for i, j, value in entries:
        said.setdefault((i, j), set()).add(value)
    clashes = sum(len(values) > 1 for values in said.values())
    columns = [list(part) for part in zip(*entries, strict=True)] or [[], [], []]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "DENSE_BYTES", -1 if sparse else 20)
        if clashes:
            with pytest.raises(LabelError, match=f"{clashes} entries are said to be both yes and no"):
                Labels.from_entries(*columns, names=range(4), ids=range(5))
            return
        labels = Labels.from_entries(*columns, names=range(4), ids=range(5))
    expected = np.zeros((5, 4), np.int8)
    for (i, j), values in said.items():
        expected[i, j] = 1 if values == {1} else -1
    np.testing.assert_array_equal(labels.rows(slice(None)), expected)
    assert labels.sparse == (sparse and 5 * len(said) < 20)


def test_saying_the_same_very_often_is_saying_it_once() -> None:
    for times in (128, 256, 300):
        assert Labels.from_entries(["p"] * times, ["x"] * times, [0] * times).ternary().tolist() == [[-1]]
        with pytest.raises(LabelError, match="both yes and no"):
            Labels.from_entries(["p"] * times, ["x"] * times, [0] * (times - 1) + [1])


LONG_REFUSED: dict[str, tuple[tuple[Any, Any, Any], dict[str, Any], list[str]]] = {
    "-1": ((["p"], ["x"], [-1]), {}, ["entry 0 (item 'p', label 'x'): -1", "what is not listed is unknown"]),
    "-100": ((["p"], ["x"], [-100]), {}, ["entry 0 (item 'p', label 'x'): -100", "neither 1 (yes) nor 0 (no)"]),
    "text": ((["a"], ["cat"], ["maybe"]), {}, ["entry 0", "'maybe'"]),
    "no value": ((["p"], ["x"], [None]), {}, ["entry 0 (item 'p', label 'x'): NaN (missing)"]),
    "null value": ((["p"], ["x"], pa.array([None], pa.int8())), {}, ["NaN (missing)"]),
    "lengths": ((["p"], ["x"], [1, 0]), {}, ["1 items, 1 labels and 2 values", "equally long"]),
    "yes and no": ((["p"] * 3, ["x"] * 3, [1, 0, 1]), {}, ["1 entries", "both yes and no", "item 'p', label 'x'"]),
    "no item": ((["p", None], ["x", "x"], [1, 0]), {}, ["1 entries have no item", "entry 1"]),
    "null item": ((pa.array(["p", None]), ["x", "x"], [1, 0]), {}, ["1 entries have no item", "entry 1"]),
    "NaN item": ((np.array([1.0, NAN := float("nan")]), ["x", "x"], [1, 0]), {}, ["no item", "entry 1"]),
    "blank label": ((["p", "q"], ["x", ""], [1, 0]), {}, ["1 entries have no label", "entry 1"]),
    "NaN label": ((["p", "q"], ["x", NAN], [1, 0]), {}, ["1 entries have no label", "entry 1"]),
    "strange label": (
        (["p", "q", "r"], ["x", "Tabby Cat", "Tabby Cat"], [1, 0, 0]),
        {"names": ["x", "tabby cat"]},
        ["1 labels, in 2 entries", "not among the 2 given", "entry 1: 'Tabby Cat'. Did you mean 'tabby cat'?"],
    ),
    "strange item": ((["p", "q"], ["x", "x"], [1, 0]), {"ids": ["p"]}, ["1 items, in 1 entries", "entry 1: 'q'"]),
    "labels that differ in case": ((["p", "q"], ["cat", "Cat"], [1, 0]), {}, ["'cat' and 'Cat'"]),
    "a name twice": ((["p"], ["x"], [1]), {"names": ["x", "x", "y"]}, ["'x' and 'x'"]),
    "an id twice": ((["p"], ["x"], [1]), {"ids": ["p", "p"]}, ["1 item ids", "'p'"]),
}


@pytest.mark.parametrize("case", LONG_REFUSED)
def test_long_form_refused_with_place_value_and_remedy(case: str) -> None:
    columns, given_words, words = LONG_REFUSED[case]
    with pytest.raises(LabelError) as caught:
        Labels.from_entries(*columns, **given_words)
    for word in words:
        assert word in str(caught.value)


# -------------------------------------------------------------------- some entries changed


@st.composite
def changes(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], list[tuple[int, int, int]]]:
    """A matrix, and entries with what they are from now on; the same entry may be told twice."""
    z = draw(ternaries)
    place = st.tuples(st.integers(0, z.shape[0] - 1), st.integers(0, z.shape[1] - 1))
    told = draw(st.dictionaries(place, st.integers(-1, 1)))
    entries = [(i, j, value) for (i, j), value in told.items()]
    return z, draw(st.permutations(entries + (draw(st.lists(st.sampled_from(entries))) if entries else [])))


@both
@given(case=changes(), block=st.sampled_from([1, 5, 1 << 22]))
def test_changed_entries_are_those_of_a_slow_loop(
    made: Any, case: tuple[np.ndarray[Any, Any], list[tuple[int, int, int]]], block: int
) -> None:
    z, entries = case
    names, ids = [f"label {j}" for j in range(z.shape[1])], [f"item {i}" for i in range(len(z))]
    labels = Labels.from_ternary(made(z), names=names, ids=ids)
    before = labels.digest()
    expected = z.copy()
    for i, j, value in entries:
        expected[i, j] = value
    rows, columns, values = ([entry[k] for entry in entries] for k in range(3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK", block)
        changed = labels.with_entries(rows, columns, values)
    direct = Labels.from_ternary(made(expected), names=names, ids=ids)
    np.testing.assert_array_equal(changed.rows(slice(None)), expected)
    assert changed == direct
    assert changed.digest() == direct.digest()
    assert changed.summary() == direct.summary()
    assert [part.tolist() for part in changed.entries()] == [part.tolist() for part in direct.entries()]
    assert changed.sparse == labels.sparse
    if labels.sparse:  # nothing unknown is stored, and what is stored is in order
        assert changed.ternary().nnz == np.count_nonzero(expected)
        assert changed.ternary().has_sorted_indices
        assert changed.ternary().indices.dtype == changed.ternary().indptr.dtype == np.int32
    assert labels.digest() == before
    np.testing.assert_array_equal(labels.rows(slice(None)), z)


@both
def test_changed_labels_are_as_immutable(made: Any) -> None:
    labels = Labels.from_ternary(made(Z), names=["a", "b", "c"], ids=["w", "x", "y", "z"])
    changed = labels.with_entries([1, 2], [0, 0], [1, 0])
    assert changed.rows(slice(None)).tolist() == [[1, -1, 0], [1, 0, 0], [0, 1, -1], [0, -1, 0]]
    assert (changed.names, changed.ids) == (labels.names, labels.ids)
    z = changed.ternary()
    for part in (z.data, z.indices, z.indptr) if changed.sparse else (z,):
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1
    assert labels.rows(slice(None)).tolist() == Z.tolist()


@both
def test_changing_nothing_and_changing_what_is_so_already(made: Any) -> None:
    labels = Labels.from_ternary(made(Z))
    assert labels.with_entries([], [], []) == labels
    assert labels.with_entries([0, 0, 1], [0, 1, 2], [1, -1, 0]) == labels
    assert labels.with_entries(2, 0, 0).rows([2]).tolist() == [[0, 1, -1]]  # one entry needs no list


@both
def test_there_and_back(made: Any) -> None:
    labels = Labels.from_ternary(made(Z))
    rows, columns, _ = labels.entries()
    nothing = labels.with_entries(rows, columns, np.zeros(len(rows), np.int8))
    assert nothing.summary()["unknown"] == Z.size
    assert nothing.with_entries(rows, columns, Z[rows, columns]) == labels


CHANGES_REFUSED: dict[str, tuple[Any, Any, Any, list[str]]] = {
    "row": ([0, 4], [0, 0], [1, 1], ["1 of the rows", "from 0 to 3", "entry 1: row 4"]),
    "row from the end": ([-1], [0], [1], ["1 of the rows", "entry 0: row -1"]),
    "column": ([0, 0], [3, -1], [1, 1], ["2 of the columns", "from 0 to 2", "entry 0: column 3", "entry 1: column -1"]),
    "z": ([0, 0], [0, 1], [2, -100], ["2 of the zs", "from -1 to 1", "entry 0: z 2", "entry 1: z -100"]),
    "NaN": ([0], [0], [np.nan], ["whole numbers", "float64"]),
    "float": ([0.0], [0], [1], ["whole numbers", "float64"]),
    "mask": ([True], [0], [1], ["whole numbers", "bool"]),
    "text": (["w"], [0], [1], ["whole numbers"]),
    "lengths": ([0, 1], [0], [1, 1], ["equally many of each", "[2]", "[1]"]),
    "matrices": ([[0]], [[0]], [[1]], ["equally many of each", "[1, 1]"]),
    "contradiction": ([0, 1, 0], [0, 0, 0], [1, 1, -1], ["1 entries are given two values", "row 0, column 0"]),
    "unknown and yes": ([3, 3], [2, 2], [0, 1], ["1 entries are given two values", "row 3, column 2"]),
}


@both
@pytest.mark.parametrize("case", CHANGES_REFUSED)
def test_changes_refused_with_place_and_value(made: Any, case: str) -> None:
    *changed, words = CHANGES_REFUSED[case]
    with pytest.raises(LabelError) as caught:
        Labels.from_ternary(made(Z)).with_entries(*changed)
    for word in ("Labels.with_entries", *words):
        assert word in str(caught.value)


def test_of_sparse_labels_only_the_items_that_change_are_made_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = Labels.from_positives(sp.random_array((300, 50), density=0.02, rng=0) > 0)
    seen: list[int] = []
    toarray = sp.csr_array.toarray
    monkeypatch.setattr(sp.csr_array, "toarray", lambda self: seen.append(self.shape[0]) or toarray(self))
    labels.with_entries([7, 200, 7], [1, 2, 3], [1, -1, 0])
    assert seen == [2]


# -------------------------------------------------------------------- memory


def memory(labels: Labels) -> int:
    z = labels.ternary()
    return sum(part.nbytes for part in ((z.data, z.indices, z.indptr) if labels.sparse else (z,)))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_labels_take_five_bytes_a_known_entry_and_four_an_item(index: type) -> None:
    items, width, known = 4000, 5000, 25  # 0.5 % known
    columns = np.tile(np.arange(0, width, width // known), items).astype(index)
    ends = np.arange(0, items * known + 1, known).astype(index)
    labels = Labels.from_ternary(sp.csr_array((np.ones(items * known), columns, ends), shape=(items, width)))
    assert memory(labels) == 5 * items * known + 4 * (items + 1)
    assert memory(labels) / items * 1_000_000 < 130e6  # of the 400 MB that a million items may take, ids included
    rows = np.repeat(np.arange(items), known)
    long = Labels.from_entries(rows, columns, np.ones(items * known, bool), names=range(width))
    assert long == labels
    assert memory(long) == memory(labels)


def test_sparse_labels_are_made_dense_by_the_block_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "BLOCK", 1000)
    seen: list[int] = []
    toarray = sp.csr_array.toarray
    monkeypatch.setattr(
        sp.csr_array, "toarray", lambda self: seen.append(self.shape[0] * self.shape[1]) or toarray(self)
    )
    labels = Labels.from_positives(sp.random_array((300, 50), density=0.02, rng=0) > 0)
    for job in (labels.digest, labels.summary, labels.entries, lambda: labels == labels[::-1][::-1]):
        job()
    labels.mapped(lambda z, rows: -z)
    assert seen
    assert max(seen) <= 1000
