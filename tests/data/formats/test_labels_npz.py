from __future__ import annotations

import io
import re
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from partly import Labels
from partly.data import read_labels, write_labels
from partly.errors import DataError

Z = np.array([[1, 0, -1], [0, 0, 0], [0, 1, 0]], np.int8)
NAMES = np.array(["cat", "dog", "cow"])
CSR = sp.csr_array(Z)
PARTS = {"data": CSR.data, "indices": CSR.indices, "indptr": CSR.indptr, "shape": np.array(CSR.shape), "names": NAMES}


def refusal(path, **arrays) -> str:
    np.savez(path, **arrays)
    with pytest.raises(DataError) as told:
        read_labels(path)
    assert str(told.value).startswith(f"{path}: ")
    return str(told.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "labels.npz"


def test_what_is_written(file):
    write_labels(Labels.from_ternary(Z, names=NAMES, ids=["x", "y", "z"]), file)
    with np.load(file, allow_pickle=False) as arrays:
        assert sorted(arrays) == ["ids", "names", "ternary"]
        assert arrays["ternary"].dtype == np.int8
        assert arrays["ternary"].tolist() == Z.tolist()
        assert arrays["ids"].tolist() == ["x", "y", "z"]
    write_labels(Labels.from_ternary(CSR, names=NAMES), file)
    with np.load(file, allow_pickle=False) as arrays:
        assert sorted(arrays) == ["data", "indices", "indptr", "names", "shape"]


def test_the_same_labels_give_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        write_labels(Labels.from_ternary(Z), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_dense_stays_dense_and_sparse_stays_sparse(file):
    for z, sparse in ((Z, False), (CSR, True)):
        write_labels(Labels.from_ternary(z, names=NAMES), file)
        assert read_labels(file).sparse is sparse


def test_missing_arrays(file):
    assert "there is no array names; found: ternary" in refusal(file, ternary=Z)
    assert "neither 'ternary' nor data, indices, indptr, shape" in refusal(file, names=NAMES)
    without = {key: part for key, part in PARTS.items() if key != "indptr"}
    assert "parts of the sparse matrix are missing: indptr" in refusal(file, **without)


def test_object_arrays_are_never_unpickled(file):
    assert "Object arrays cannot be loaded" in refusal(file, names=NAMES, ternary=Z.astype(object))
    assert "Object arrays cannot be loaded" in refusal(file, names=NAMES.astype(object), ternary=Z)


@pytest.mark.parametrize("names", [np.arange(3), NAMES.astype("S"), NAMES.reshape(1, 3), np.array("cat")])
def test_names_are_text_in_one_dimension(file, names):
    assert "the array 'names' must be text in one dimension" in refusal(file, ternary=Z, names=names)


def test_labels_that_are_none(file):
    assert "1 entries are something else" in refusal(file, names=NAMES, ternary=np.where(Z == -1, -100, Z))
    refusal(file, names=NAMES, ternary=Z[0])
    refusal(file, names=NAMES[:2], ternary=Z)
    refusal(file, names=np.array(["cat", "Cat", "cow"]), ternary=Z)
    refusal(file, names=NAMES, ternary=Z, ids=np.array(["x", "x", "y"]))


@pytest.mark.parametrize(
    ("key", "part", "reason"),
    [
        ("indices", [0, 2, 3], "indices must be"),
        ("indices", [0, 2, -1], "indices must be"),
        ("indices", [0, 0, 1], "an entry occurs more than once"),
        ("indices", [0.0, 2.0, 1.0], "all but data whole numbers"),
        ("indptr", [0, 2, 1, 3], "indptr|index pointer"),
        ("indptr", [0, 2, 3], "index pointer"),
        ("indptr", [0, 2, 2, 9], "index pointer"),
        ("shape", [3, 3, 3], "cannot be read"),
        ("shape", [-3, 3], "cannot be read"),
        ("shape", [10**15, 3], "cannot be read"),
        ("data", [[1, -1, 1]], "one-dimensional numbers"),
        ("data", [1, 2, 1], "1 entries are something else"),
    ],
)
def test_sparse_parts_that_do_not_fit(file, key, part, reason):
    assert re.search(reason, refusal(file, **PARTS | {key: np.array(part)}))


def lying(shape: tuple[int, ...]) -> bytes:
    """An int8 array of nine numbers whose header tells another shape."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|i1", "fortran_order": False, "shape": shape})
    return stream.getvalue() + Z.tobytes()


@pytest.mark.parametrize("shape", [(4, 3), (2, 3), (10**15, 3), (3, -3)])
def test_a_header_that_lies(file, shape):
    np.savez(file, names=NAMES)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("ternary.npy", lying(shape))
    with pytest.raises(DataError, match="cannot be read"):
        read_labels(file)


def test_a_member_that_is_no_array(file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("names.npy", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(DataError, match="cannot be read"):
        read_labels(file)


def test_damage_is_noticed_or_harmless(file):
    labels = Labels.from_ternary(Z, names=NAMES, ids=["x", "y", "z"])
    write_labels(labels, file)
    whole = file.read_bytes()
    refused = 0
    for cut in range(0, len(whole), 53):
        file.write_bytes(whole[:cut])
        with pytest.raises(DataError):
            read_labels(file)
    start = whole.index(b"ternary.npy") + len(b"ternary.npy")
    for place in range(start, start + 60):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            assert read_labels(file) == labels
        except DataError:
            refused += 1
    assert refused > 10
