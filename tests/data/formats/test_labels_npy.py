"""Labels in a .npy file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import partly
from partly.data import read_labels
from partly.errors import DataError

NAN = np.nan


def test_the_numbers_mean_what_they_mean_in_a_wide_table(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    np.save(path, np.array([[1, 0], [NAN, 1]]))
    assert read_labels(path).ternary().tolist() == [[1, -1], [0, 1]]
    assert read_labels(path, absent="no").ternary().tolist() == [[1, -1], [-1, 1]]
    assert read_labels(path, names=["cat", "dog"]).names == ("cat", "dog")
    np.save(path, np.array([True, False]))
    assert read_labels(path).ternary().tolist() == [[1], [-1]]
    np.save(path, np.array([["yes", "?"], ["n", "-"]]))
    assert read_labels(path, missing=["-"]).ternary().tolist() == [[1, 0], [-1, 0]]


def test_a_minus_one_is_what_the_caller_says(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    np.save(path, np.array([[1, -1], [0, 1]], np.int8))
    with pytest.raises(DataError, match=r"(?s)item 0, label '1': -1.*Labels.from_ternary.*--uncertain unknown"):
        read_labels(path)
    for word, z in (("unknown", 0), ("yes", 1), ("no", -1)):
        assert read_labels(path, uncertain=word).ternary().tolist() == [[1, z], [-1, 1]]
    assert read_labels(path, uncertain="unknown", absent="no").ternary().tolist() == [[1, 0], [-1, 1]]


def test_rows_are_matched_by_position(tmp_path: Path) -> None:
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(x, np.eye(3))
    np.save(y, np.array([[1, 0], [NAN, 1], [0, 0]]))
    data = partly.read(x, y)
    assert data.labels.ternary().tolist() == [[1, -1], [0, 1], [-1, -1]]
    assert data.notes == (f"Neither {x} nor {y} has ids: their 3 rows are matched by position.",)
    np.save(x, np.eye(4))
    with pytest.raises(DataError, match=r"has 3 rows, but .*x.npy has 4"):
        partly.read(x, y)
    (tmp_path / "x.csv").write_text("item,a\np,1\nq,2\nr,3\n")
    with pytest.raises(DataError, match=r"has no item ids.*'p'.*--id-column"):
        partly.read(tmp_path / "x.csv", y)


def test_hostile_files(tmp_path: Path) -> None:
    path = tmp_path / "y.npy"
    np.save(path, np.array([[1, 0], [0, 1]]))
    whole = path.read_bytes()
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }"
    for content in (
        b"",
        b"x" * 100,
        whole[:-3],
        whole[:20],
        whole.replace(b"<i8", b"|O8"),
        header % b"1073741824, 0",
        header % b"1073741824, 1073741824",
        header % b"2, 2, 2",
        b"PK\x03\x04" + b"x" * 50,
    ):
        path.write_bytes(content.ljust(128) if content.startswith(b"\x93NUMPY\x01\x00v") else content)
        with pytest.raises(DataError, match=str(path)):
            read_labels(path)
    np.save(path, np.array([[{"a": 1}]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        read_labels(path)
    np.save(path, np.array([[0.5, 2]]))
    with pytest.raises(DataError, match=r"item 0, label '0': 0\.5"):
        read_labels(path)
