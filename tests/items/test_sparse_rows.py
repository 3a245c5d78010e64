"""Items that are rows of a CSR matrix: a scale and no mean, against scikit-learn; never dense as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.preprocessing import StandardScaler

from partly import Classifier, Dataset, Labels, data
from partly.clock import Clock
from partly.errors import DataError
from partly.items import SparseRows, as_items, sparse_features, sparse_rows
from partly.pool import Pool

Array = np.ndarray[Any, Any]
MATRICES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 9), st.integers(1, 5)),
    elements=st.just(0.0) | st.just(0.0) | st.floats(-1e3, 1e3, width=32),
)
BLOCKS = st.sampled_from([1, 4, 1 << 22])  # stored numbers at a time


@given(MATRICES, BLOCKS)
def test_the_scale_is_that_of_scikit_learn_and_the_mean_is_0(x: Array, block: int) -> None:
    scaler = StandardScaler(with_mean=False).fit(sp.csr_array(x.astype(np.float64)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_rows, "BLOCK", block)
        found = as_items(sp.csr_array(x)).statistics
    assert found.mean.tolist() == [0] * x.shape[1]
    assert found.mean.dtype == found.scale.dtype == torch.float64
    np.testing.assert_allclose(found.scale, np.sqrt(scaler.var_), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.scale, x.astype(np.float64).std(axis=0), rtol=1e-9, atol=1e-9)


@given(MATRICES, st.data(), BLOCKS)
def test_statistics_of_a_view_are_those_of_a_copy(x: Array, given_: st.DataObject, block: int) -> None:
    rows = np.array(given_.draw(st.lists(st.integers(0, len(x) - 1), min_size=1, max_size=9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_rows, "BLOCK", block)
        view, copy = as_items(sp.csr_array(x))[rows], as_items(sp.csr_array(x[rows]))
        np.testing.assert_allclose(view.statistics.scale, copy.statistics.scale, rtol=1e-9, atol=1e-9)


@given(MATRICES)
def test_the_digest_does_not_depend_on_the_blocks(x: Array) -> None:
    whole = as_items(sp.csr_array(x)).digest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_rows, "BLOCK", 2)
        assert as_items(sp.csr_array(x)).digest() == whole


def test_the_digest_of_a_view_is_that_of_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its rows hold more numbers than the others, so that it is cut into other blocks."""
    x = np.zeros((8, 5), np.float32)
    x[:4] = 1
    for block in (1 << 22, 8):
        monkeypatch.setattr(sparse_rows, "BLOCK", block)
        assert as_items(sp.csr_array(x))[:4].digest() == as_items(sp.csr_array(x[:4])).digest()


def test_the_digest_tells_values_places_and_shapes_apart() -> None:
    x = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]], np.float32)
    others = [x, -x, x[::-1], x[:, ::-1], x.T, x[:2], np.hstack([x, x[:, :1] * 0]), x * 2, np.vstack([x, 0 * x[:1]])]
    assert len({as_items(sp.csr_array(other)).digest() for other in others}) == len(others)


@pytest.mark.parametrize("made", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_equal_matrices_of_any_form_are_equal_items(made: Any, dtype: type) -> None:
    x = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], dtype)
    items = as_items(made(x))
    assert isinstance(items, SparseRows)
    assert items.matrix.dtype == np.float32
    assert items.digest() == as_items(sp.csr_array(x.astype(np.float32))).digest()
    np.testing.assert_array_equal(items.take(slice(None)).numpy(), x)


def test_a_zero_that_is_stored_is_a_zero() -> None:
    stored = sp.csr_array((np.array([1, 0, 2], np.float32), [0, 1, 1], [0, 2, 3]), shape=(2, 3))
    plain = sp.csr_array(stored.toarray())
    assert (stored.nnz, plain.nnz) == (3, 2)
    a, b = as_items(stored), as_items(plain)
    np.testing.assert_array_equal(a.statistics.scale, b.statistics.scale)
    assert a.digest() == b.digest()


UNSORTED = ([1, 2, 3], [2, 0, 1], [0, 2, 3])
TWICE = ([1, 2, 3], [0, 0, 1], [0, 2, 3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("parts", [UNSORTED, TWICE], ids=["unsorted", "twice"])
def test_the_callers_matrix_is_left_alone(parts: tuple[list[int], ...], dtype: type) -> None:
    own = [np.array(parts[0], dtype), *(np.array(part, np.int32) for part in parts[1:])]
    x = sp.csr_array(tuple(own), shape=(2, 3))
    before = [part.copy() for part in (x.data, x.indices, x.indptr)]
    dense = x.toarray()
    items = as_items(x)
    np.testing.assert_array_equal(items.take(slice(None)).numpy(), dense)
    for part, old in zip((x.data, x.indices, x.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


def test_nothing_is_copied_where_the_matrix_is_float32_already() -> None:
    x = sp.csr_array(np.eye(3, dtype=np.float32))
    matrix = as_items(x).matrix
    assert np.shares_memory(matrix.data, x.data)
    assert np.shares_memory(matrix.indices, x.indices)


def test_only_batches_are_made_dense(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[int] = []
    width = 30
    toarray = sp.csr_array.toarray

    def counted(self: Any, *more: Any, **words: Any) -> Array:
        seen.extend([self.shape[0]] * (self.shape[1] == width))  # and not labels
        return toarray(self, *more, **words)

    monkeypatch.setattr(sp.csr_array, "toarray", counted)
    monkeypatch.setattr(sp.csr_array, "todense", None)
    items = as_items(sp.random_array((40, width), density=0.1, rng=0, format="csr"))
    assert items.statistics.scale.shape == (width,)
    assert items[5:].digest() != items.digest()
    list(Pool(items, Labels.from_full(np.ones((40, 2))), batch_size=8).batches(Clock(0)))
    data.write(Dataset(items, Labels.from_full(np.ones((40, 0)))), tmp_path / "x.npz")
    assert data.read(tmp_path / "x.npz").items.digest() == items.digest()
    assert seen == [8] * 5


def test_one_pass_for_statistics_and_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_rows, "BLOCK", 4)  # of one number each
    seen: list[int] = []
    part = SparseRows._part

    def counted(self: SparseRows, index: Any) -> Any:
        read = part(self, index)
        seen.append(read.shape[0])
        return read

    monkeypatch.setattr(SparseRows, "_part", counted)
    items = as_items(sp.eye_array(9))
    for _ in range(2):
        assert items.digest()
        assert items.statistics.scale.tolist() == pytest.approx([8**0.5 / 9] * 9)
    assert seen == [4, 4, 1]


def test_names_are_kept_in_views() -> None:
    items = sparse_features(sp.eye_array(3), names=("a", "b", "c"))
    assert items[:2].names == ("a", "b", "c")


# ---------------------------------------------------------------- refused


def test_what_is_not_finite_is_refused_with_its_place() -> None:
    x = sp.csr_array(np.array([[0, 1], [np.nan, 0], [0, 0], [1e300, -3e38]]))
    with pytest.raises(DataError) as told:
        as_items(x, "X")
    first, *places = str(told.value).splitlines()
    assert first == "X: 3 features are missing (NaN), infinite or too large (beyond 1e+37)"
    assert places[:3] == ["  item 1, feature 0: nan", "  item 3, feature 0: inf", "  item 3, feature 1: -3e+38"]
    with pytest.raises(DataError, match=r"\n  item 1, feature a: nan"):
        sparse_features(x, names=("a", "b"))


@pytest.mark.parametrize("bad", [sp.coo_array(np.ones(3)), sp.csr_array(np.ones((2, 2), complex))])
def test_what_is_no_matrix_of_numbers(bad: Any) -> None:
    with pytest.raises(DataError, match="X: features must be a matrix of numbers; got a sparse one"):
        as_items(bad)


def test_weights_keep_their_relative_size() -> None:
    """One scale for all columns; that of a constant is 0. Whole numbers: the geometric mean of it and their own."""
    weighted = np.array([[0.5, 0.0, 1.0], [0.0, 0.25, 1.0], [0.5, 0.0, 1.0], [0.0, 0.0, 1.0]])
    own = weighted.std(axis=0)
    common = np.sqrt((own[:2] ** 2).mean())
    found = as_items(sp.csr_array(weighted)).statistics
    np.testing.assert_allclose(found.scale, own, atol=1e-9)
    np.testing.assert_allclose(found.keeping_size.scale, [common, common, 0.0], rtol=1e-9)
    found = as_items(sp.csr_array(4 * weighted)).statistics
    np.testing.assert_allclose(
        found.keeping_size.scale, 4 * np.sqrt([common * own[0], common * own[1], 0.0]), rtol=1e-9
    )


def test_a_linear_head_keeps_the_weights_of_tf_idf() -> None:
    """Two large features say all; scaled to unit variance, 300 small ones of noise would count as much."""
    rng = np.random.default_rng(0)
    truth = rng.random((200, 2)) < 0.3
    noise = 0.01 * sp.random_array((200, 300), density=0.05, rng=rng)
    x = sp.csr_array(sp.hstack([sp.csr_array(truth * 0.7), noise]))
    model = Classifier("bce", head="linear", progress=False).fit(x[:100], truth[:100].astype(int))
    first = model.fitted_.method.network.get_submodule("features.0").get_buffer("inverse_scale")
    assert first[first > 0].unique().numel() == 1
    assert model.score(x[100:], truth[100:].astype(int)) == 1.0
