from __future__ import annotations

import hashlib
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partly.data import digest, read_features, tables
from partly.data.features import as_features
from partly.errors import DataError

X = np.array([[1.5, -2.0], [0.0, 1e-3], [3.0, 4.0]])


def refusal(path) -> str:
    with pytest.raises(DataError) as told:
        read_features(path)
    assert str(told.value).startswith(f"{path}")
    return str(told.value)


def test_every_format_gives_the_same(tmp_path):
    (tmp_path / "a.csv").write_text("item,a,b\n007,1.5,-2\nNA,0,1e-3\nz,3.0,+4\n")
    pq.write_table(pa.table({"a": X[:, 0], "item": ["007", "NA", "z"], "b": X[:, 1]}), tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "a.npz", features=X, ids=np.array(["007", "NA", "z"]))
    for name in ("a.csv", "a.parquet", "a.npy", "a.npz"):
        x, ids = read_features(tmp_path / name)
        assert x.dtype == np.float32
        assert x.tolist() == X.astype(np.float32).tolist()
        assert ids == (("0", "1", "2") if name == "a.npy" else ("007", "NA", "z"))


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int64", "bool", ">f4"])
def test_numbers_of_any_kind(tmp_path, dtype):
    np.save(tmp_path / "a.npy", np.asfortranarray(X.astype(dtype)))
    x, _ = read_features(tmp_path / "a.npy")
    assert x.dtype == np.float32
    assert x.flags.c_contiguous
    assert np.array_equal(x, X.astype(dtype).astype(np.float32))


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((2, 2, 2)), np.array([["1"]]), np.ones((2, 2), complex)])
def test_what_is_no_matrix_of_numbers(tmp_path, bad):
    np.save(tmp_path / "a.npy", bad)
    assert "features must be a matrix of numbers, items x features" in refusal(tmp_path / "a.npy")


def test_object_arrays_are_never_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", X.astype(object), allow_pickle=True)
    assert "Object arrays cannot be loaded" in refusal(tmp_path / "a.npy")


@pytest.mark.parametrize("shape", [(9, 2), (2, 2), (10**15, 2)])
def test_a_header_that_lies(tmp_path, shape):
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.write(X.tobytes())
    assert "cannot be read" in refusal(tmp_path / "a.npy")


def test_features_that_are_not_finite_are_counted_and_placed(tmp_path):
    x = np.ones((10, 3))
    x[2, 1], x[4, 0], x[5, 2], x[6:, 0] = np.nan, np.inf, 1e300, -np.inf
    np.save(tmp_path / "a.npy", x)
    told = refusal(tmp_path / "a.npy")
    assert "not finite or too large for float32: 7\n  item 2, column 1: nan\n  item 4, column 0: inf\n" in told
    assert "item 5, column 2: 1e+300" in told
    assert "... and 2 more" in told


def test_in_a_table_the_line_the_item_and_the_column_are_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('item,a,b\n"x\ny",1,\nz,nan,2\n')
    told = refusal(path)
    assert f": 2\n  {path}:2: item 'x\\ny', column 'b': nan\n  {path}:4: item 'z', column 'a': nan\n" in told


def test_a_null_is_a_missing_feature(tmp_path):
    pq.write_table(pa.table({"item": ["x", "y"], "a": [1.0, None]}), tmp_path / "a.parquet")
    assert f"  {tmp_path / 'a.parquet'}: row 2: item 'y', column 'a': nan" in refusal(tmp_path / "a.parquet")


def test_columns_that_are_not_numbers_are_all_named(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("item,a,colour,b,c\nx,1,red,1,1\ny,1,blue,1,1 kg\n" + "z,1,2,3,4\n" * 20)
    for size in (1 << 20, 1 << 5):  # in one block and in many
        monkeypatch.setattr(tables, "BLOCK_BYTES", size)
        told = refusal(path)
        assert told.splitlines()[0] == f"{path}: columns that are not numbers: 2"
        assert told.splitlines()[1:] == [f"  column 'colour', {path}:2", f"  column 'c', {path}:3"]
    pq.write_table(pa.table({"item": ["x"], "when": [pa.scalar(0, pa.timestamp("s"))]}), tmp_path / "a.parquet")
    assert "column 'when'" in refusal(tmp_path / "a.parquet")


def test_ids_are_there_once(tmp_path):
    (tmp_path / "a.csv").write_text("item,a\nx,1\nx,2\n")
    assert "'x', as in" in refusal(tmp_path / "a.csv")
    np.savez(tmp_path / "a.npz", features=X, ids=np.array(["x", "x", "y"]))
    assert "occur more than once" in refusal(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", features=X, ids=np.array(["x", "y"]))
    assert "2 ids for 3 items" in refusal(tmp_path / "a.npz")


def test_other_files_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=X)
    assert "there is no array features; there is: x" in refusal(tmp_path / "a.npz")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    assert "there is no column 'item'" in refusal(tmp_path / "a.csv")
    os.mkfifo(tmp_path / "b.npy")
    assert "a pipe or a device" in refusal(tmp_path / "b.npy")
    for name, content in (("c.npy", b""), ("d.npy", b"\x80\x04K\x01."), ("e.npz", b"PK"), ("f.pkl", b"")):
        (tmp_path / name).write_bytes(content)
        refusal(tmp_path / name)


def test_no_items_and_no_features(tmp_path):
    (tmp_path / "a.csv").write_text("item,a,b\n")
    assert read_features(tmp_path / "a.csv")[0].shape == (0, 2)
    (tmp_path / "a.csv").write_text("item\nx\n")
    assert read_features(tmp_path / "a.csv")[0].shape == (1, 0)


def test_features_are_read_block_by_block(tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    rows = "".join(f"i{k},{','.join(map(repr, row))}\n" for k, row in enumerate(x.tolist()))
    (tmp_path / "a.csv").write_text(f"item,a,b,c,d\n{rows}")
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 10)
    read, ids = read_features(tmp_path / "a.csv")
    assert np.array_equal(read, x)
    assert ids == tuple(f"i{k}" for k in range(500))


def test_the_digest_is_of_shape_type_and_numbers():
    x = X.astype(np.float32)
    expected = hashlib.sha256(b"(3, 2)<f4" + x.astype("<f4").tobytes()).hexdigest()
    assert digest(x) == expected
    assert digest(np.asfortranarray(x)) == digest(x.astype(">f4")) == digest(np.repeat(x, 2, 0)[::2]) == expected
    changed = x.copy()
    changed[0, 0] += 1
    others = {digest(changed), digest(x.reshape(2, 3)), digest(x.view(np.int32)), digest(x[::-1]), expected}
    assert len(others) == 5
    assert digest(np.zeros((0, 3))) != digest(np.zeros((3, 0)))


def test_the_door_for_arrays_names_its_place():
    with pytest.raises(DataError, match="X: features must be a matrix"):
        as_features([1, 2], "X")
    with pytest.raises(DataError, match=r"X: .*\n  item 0, column 1: nan"):
        as_features([[1.0, float("nan")]], "X")
