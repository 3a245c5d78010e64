from __future__ import annotations

import os

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse as sp
import torch

import partly
from partly import Dataset, Labels
from partly.data import read, write
from partly.data.formats import feature_arrays
from partly.errors import DataError
from partly.items import Arrays, SparseRows, features, sparse_features

X = np.array([[1.5, -2.0], [0.0, 1e-3], [3.0, 4.0]])
CSR = sp.csr_array(X)
PARTS = {"data": CSR.data, "indices": CSR.indices, "indptr": CSR.indptr, "shape": np.array(CSR.shape)}


def refusal(path) -> str:
    """Where a file is mapped, its numbers are looked at when they are measured."""
    with pytest.raises(DataError) as told:
        _ = read(path).items.statistics
    assert str(told.value).startswith(f"{path}")
    return str(told.value)


# ---------------------------------------------------------------- .npy


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int64", "bool", ">f4"])
def test_numbers_of_any_kind(tmp_path, dtype):
    np.save(tmp_path / "a.npy", np.asfortranarray(X.astype(dtype)))
    items = read(tmp_path / "a.npy").items
    assert isinstance(items.array, np.memmap)
    x = items.take(torch.arange(3))
    assert x.dtype == torch.float32
    assert x.is_contiguous()
    assert np.array_equal(x.numpy(), X.astype(dtype).astype(np.float32))
    assert torch.equal(items.take(slice(None)), x)


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 2)), np.array([["1"]]), np.ones((2, 2), complex)])
@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_what_is_no_matrix_of_numbers(tmp_path, suffix, bad):
    np.save(tmp_path / "a.npy", bad)
    np.savez(tmp_path / "a.npz", features=bad)
    assert "features must be a matrix of numbers, items x features" in refusal(tmp_path / f"a.{suffix}")


def test_object_arrays_are_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", X.astype(object), allow_pickle=True)
    assert "Python objects" in refusal(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", features=X.astype(object))
    assert "Object arrays cannot be loaded" in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", [(9, 2), (2, 2), (10**15, 2), (10**30, 2)])
def test_a_header_that_lies(tmp_path, shape):
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.write(X.tobytes())
    assert "cannot be read" in refusal(tmp_path / "a.npy")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_features_that_are_not_finite_are_counted_and_placed(tmp_path, suffix):
    x = np.ones((10, 3))
    x[2, 1], x[4, 0], x[5, 2], x[6:, 0] = np.nan, np.inf, 1e300, -np.inf
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "a.npz", features=x)
    told = refusal(tmp_path / f"a.{suffix}")
    if suffix == "npy":  # mapped: nothing is filled in
        assert "7 of 30 features are missing (NaN), infinite or too large (beyond 1e+37)\n" in told
        assert "\n  item 2, feature 1: nan\n  item 4, feature 0: inf\n" in told
    else:
        assert "6 of 30 features are infinite or too large (beyond 1e+37)\n  item 4, feature 0: inf\n" in told
    assert "item 5, feature 2: 1e+300" in told
    assert f"... and {2 if suffix == 'npy' else 1} more" in told


def test_other_files_are_refused(tmp_path):
    os.mkfifo(tmp_path / "b.npy")
    assert "a pipe or a device" in refusal(tmp_path / "b.npy")
    for name, content in (("c.npy", b""), ("d.npy", b"\x80\x04K\x01."), ("e.npz", b"PK"), ("f.pkl", b"")):
        (tmp_path / name).write_bytes(content)
        refusal(tmp_path / name)


# ---------------------------------------------------------------- .npz


def test_a_dense_matrix_with_names_and_ids(tmp_path):
    words = {"ids": np.array(["x", "y", "z"]), "feature_names": np.array(["a", "b"])}
    np.savez(tmp_path / "a.npz", features=X, **words)
    data = read(tmp_path / "a.npz")
    assert isinstance(data.items, Arrays)
    assert np.array_equal(data.items.array, X)
    assert data.items.names == ("a", "b")
    assert data.labels.ids == ("x", "y", "z")
    np.savez(tmp_path / "a.npz", features=np.array([[np.nan, 1]]), feature_names=words["feature_names"])
    assert read(tmp_path / "a.npz").items.needs() == ["'a': 1 missing"]


def test_a_sparse_matrix_as_scipy_writes_it(tmp_path):
    for compressed in (True, False):
        sp.save_npz(tmp_path / "a.npz", CSR, compressed=compressed)
        data = read(tmp_path / "a.npz")
        assert isinstance(data.items, SparseRows)
        assert np.array_equal(data.items.take(slice(None)).numpy(), X.astype(np.float32))
        assert data.labels.ids == ("0", "1", "2")


def test_a_sparse_matrix_with_names_and_ids(tmp_path):
    np.savez(tmp_path / "a.npz", **PARTS, ids=np.array(["x", "y", "z"]), feature_names=np.array(["a", "b"]))
    data = read(tmp_path / "a.npz")
    assert isinstance(data.items, SparseRows)
    assert data.items.names == ("a", "b")
    assert data.labels.ids == ("x", "y", "z")


@pytest.mark.parametrize(
    ("key", "part", "reason"),
    [
        ("indices", [0, 1, 1, 0, 2], "indices must be"),
        ("indices", [0, 0, 1, 0, 1], "an entry occurs more than once"),
        ("indptr", [0, 2, 1, 5], "ind"),
        ("shape", [3, 2, 1], "cannot be read"),
        ("data", [[1, 2, 3, 4, 5]], "one-dimensional numbers"),
        ("data", ["a"] * 5, "one-dimensional numbers"),
        ("data", [1, 2, np.nan, 4, 5], "item 1, feature 1: nan"),
    ],
)
def test_sparse_parts_that_do_not_fit(tmp_path, key, part, reason):
    np.savez(tmp_path / "a.npz", **PARTS | {key: np.array(part)})
    assert reason in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("matrix", [{"features": X}, PARTS], ids=["dense", "sparse"])
def test_ids_are_there_once(tmp_path, matrix):
    np.savez(tmp_path / "a.npz", **matrix, ids=np.array(["x", "x", "y"]))
    assert "occur more than once" in refusal(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", **matrix, ids=np.array(["x", "y"]))
    assert "2 ids for 3 items" in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("matrix", [{"features": X}, PARTS], ids=["dense", "sparse"])
@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"]])
def test_there_is_a_name_for_each_feature(tmp_path, matrix, names):
    np.savez(tmp_path / "a.npz", **matrix, feature_names=np.array(names))
    assert "name" in refusal(tmp_path / "a.npz")


def test_a_file_without_features(tmp_path):
    np.savez(tmp_path / "a.npz", x=X)
    assert "there is no array features; found: x" in refusal(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", **{key: part for key, part in PARTS.items() if key != "indptr"})
    assert "there is no array features" in refusal(tmp_path / "a.npz")


# ---------------------------------------------------------------- writing


def dataset(items, ids=None) -> Dataset:
    return Dataset(items, Labels.from_full(np.ones((len(items), 0)), ids=ids))


def test_what_is_written(tmp_path):
    write(dataset(features(X, names=("a", "b")), ["x", "y", "z"]), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as there:
        assert sorted(there) == ["feature_names", "features", "ids"]
        assert there["features"].dtype == np.float32
    write(dataset(features(X)), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as there:
        assert sorted(there) == ["features"]
    write(dataset(sparse_features(CSR)), tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as there:
        assert sorted(there) == ["data", "indices", "indptr", "shape"]
    write(dataset(features(X)), tmp_path / "a.npy")
    assert np.array_equal(np.load(tmp_path / "a.npy"), X.astype(np.float32))


def test_a_matrix_is_written_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_arrays, "BLOCK", 2)
    seen = []
    take = Arrays.take
    monkeypatch.setattr(Arrays, "take", lambda self, index: seen.append(index) or take(self, index))
    write(dataset(features(np.eye(5))), tmp_path / "a.npy")
    assert seen == [slice(0, 2), slice(2, 4), slice(4, 6)]
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.eye(5))


def test_a_view_of_sparse_rows_is_written_alone(tmp_path):
    write(dataset(sparse_features(CSR)[[2, 0]]), tmp_path / "a.npz")
    assert np.array_equal(read(tmp_path / "a.npz").items.take(slice(None)).numpy(), X[[2, 0]].astype(np.float32))


@pytest.mark.parametrize("word", ["a\0", "\ud800"])
def test_words_that_would_not_come_back_are_not_written(tmp_path, word):
    for names, ids in ((None, [word, "y", "z"]), ((word, "b"), None)):
        with pytest.raises(DataError, match="not valid Unicode: 1"):
            write(dataset(features(X, names=names), ids), tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def test_a_matrix_by_columns_is_refused(tmp_path):
    """Its arrays look the same, and would be read as the transposed matrix."""
    path = tmp_path / "x.npz"
    scipy.sparse.save_npz(path, scipy.sparse.csc_array(np.triu(np.ones((4, 4)))))
    with pytest.raises(DataError, match=r"of the form b'csc'. Save it by rows"):
        partly.read(path)
    scipy.sparse.save_npz(path, scipy.sparse.csr_array(np.triu(np.ones((4, 4)))))
    assert partly.read(path).items.take(slice(None)).numpy().tolist() == np.triu(np.ones((4, 4))).tolist()


def test_a_npy_would_lose_ids_and_names(tmp_path):
    items = partly.items.features(np.ones((2, 1)))
    labels = partly.Labels.from_full([[1], [0]], ids=["b", "a"])
    with pytest.raises(DataError, match=r"would lose the ids"):
        partly.write(partly.Dataset(items, labels), tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()
