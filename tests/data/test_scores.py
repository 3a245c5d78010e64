from __future__ import annotations

import weakref

import numpy as np
import pyarrow.parquet as pq
import pytest

from partly.data import feature_table, read_scores, write_scores
from partly.errors import DataError


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_write_then_read_is_the_identity(tmp_path, suffix):
    scores = np.random.default_rng(0).random((50, 3)).astype(np.float32)
    ids, names = tuple(f"0{i}\n" for i in range(50)), ("cat", 'a, "b"', "é")
    write_scores(tmp_path / f"a.{suffix}", scores, ids, names)
    read = read_scores(tmp_path / f"a.{suffix}")
    assert np.array_equal(read.values, scores)
    assert (read.ids, read.names) == (ids, names)


def test_other_suffixes_are_refused(tmp_path):
    for call in (read_scores, lambda path: write_scores(path, np.ones((1, 1)), ["x"], ["cat"])):
        with pytest.raises(DataError, match=r"There is: \.csv, \.parquet"):
            call(tmp_path / "a.npz")


@pytest.mark.parametrize(("ids", "names"), [(["x"], ["item"]), (["\0"], ["cat"]), (["x"], ["\ud800"])])
def test_words_that_would_not_come_back_are_not_written(tmp_path, ids, names):
    with pytest.raises(DataError, match=r"a\.csv: "):
        write_scores(tmp_path / "a.csv", np.ones((1, 1)), ids, names)
    assert not (tmp_path / "a.csv").exists()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_blocks_are_written_as_they_come_and_let_go(tmp_path, monkeypatch, suffix):
    """Groups of the file are neither as small as the blocks that come nor as large as all of them."""
    monkeypatch.setitem(feature_table.CELLS, f".{suffix}", 7 * 3)
    whole = np.random.default_rng(0).random((50, 3)).astype(np.float32)
    alive = []

    def blocks():
        for start in range(0, 50, 4):
            assert sum(one() is not None for one in alive) <= 1  # the one before, at most
            block = whole[start : start + 4].copy()
            alive.append(weakref.ref(block))
            yield block

    write_scores(tmp_path / f"a.{suffix}", blocks(), map(str, range(50)), ("a", "b", "c"))
    read = read_scores(tmp_path / f"a.{suffix}")
    np.testing.assert_array_equal(read.values, whole)
    assert read.ids == tuple(map(str, range(50)))
    if suffix == "parquet":
        assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups == 8


def test_what_fails_on_the_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")

    def blocks():
        yield np.ones((2, 1), np.float32)
        raise DataError("halfway")

    with pytest.raises(DataError, match="halfway"):
        write_scores(path, blocks(), ["x", "y", "z"], ["cat"])
    assert [one.name for one in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_text() == "old"
