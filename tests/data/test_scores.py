from __future__ import annotations

import weakref

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly import Labels
from partly.data import ScoreFile, read_scores, write_scores, write_strongest
from partly.data.formats import feature_table
from partly.data.scores import strongest
from partly.errors import DataError, SettingError


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
        with pytest.raises(DataError, match=r"Available: \.csv, \.parquet"):
            call(tmp_path / "a.txt")


@pytest.mark.parametrize(("ids", "names"), [(["x"], ["item"]), (["\0"], ["cat"]), (["x"], ["\ud800"])])
def test_words_that_would_not_come_back_are_not_written(tmp_path, ids, names):
    with pytest.raises(DataError, match=r"a\.csv: "):
        write_scores(tmp_path / "a.csv", np.ones((1, 1)), ids, names)
    assert not (tmp_path / "a.csv").exists()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_blocks_are_written_as_they_come_and_let_go(tmp_path, monkeypatch, suffix):
    """Groups of the file are neither as small as the blocks that come nor as large as all of them."""
    monkeypatch.setitem(feature_table.BLOCK_CELLS, f".{suffix}", 7 * 3)
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


# -------------------------------------------------------------------- the strongest


@given(seed=st.integers(0, 10**6), top=st.none() | st.integers(1, 7), above=st.sampled_from([None, 0.0, 0.5, 1.1]))
def test_the_strongest_are_those_that_sorting_finds(seed, top, above):
    """Equal ones, of which there are many, by the order of the labels."""
    p = (np.random.default_rng(seed).integers(0, 5, (9, 6)) / 4).astype(np.float32)
    rows, columns = strongest(p, top, above)
    wanted = []
    for i, row in enumerate(p):
        ranked = sorted(range(len(row)), key=lambda j: (-row[j], j))[:top]
        wanted += [(i, j) for j in ranked if above is None or row[j] >= above]
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == wanted


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_strongest_are_written_block_after_block(tmp_path, suffix):
    p = np.array([[0.1, 0.9], [0.8, 0.7], [0.2, 0.3]], np.float32)
    path = tmp_path / f"top.{suffix}"
    count = write_strongest(path, iter([p[:2], p[2:]]), iter("xyz"), ("a", "b"), above=np.array([0.2, 0.75]))
    table = pd.read_csv(path) if suffix == "csv" else pd.read_parquet(path)
    assert count == 3
    assert table["item"].tolist() == ["x", "y", "z"]
    assert table["label"].tolist() == ["b", "a", "a"]
    assert table["probability"].tolist() == pytest.approx([0.9, 0.8, 0.2])
    with pytest.raises(SettingError, match="top = 0"):
        write_strongest(path, iter([p]), iter("xyz"), ("a", "b"), top=0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_scores_are_read_block_after_block(tmp_path, suffix):
    """Of the items and labels that are asked for, in the order of the file; what is missing or twice is refused."""
    p = np.random.default_rng(0).random((4, 3)).astype(np.float32)
    write_scores(tmp_path / f"a.{suffix}", p, "wxyz", ("a", "b", "c"))

    def blocks(file, ids, names):
        labels = Labels.from_full(np.ones((len(ids), len(names))), ids=ids, names=names)
        return list(ScoreFile(tmp_path / f"{file}.{suffix}").blocks(labels))

    ((index, found),) = blocks("a", ["z", "w"], ["c", "a"])
    assert index.tolist() == [1, 0]
    np.testing.assert_array_equal(found, p[[0, 3]][:, [2, 0]])
    for ids, names, words in ((["v", "w"], ["a"], "1 of the 2 items"), (["w"], ["d"], "1 of the 1 labels")):
        with pytest.raises(DataError, match=words):
            blocks("a", ids, names)
    write_scores(tmp_path / f"b.{suffix}", p, "wxyx", ("a", "b", "c"))
    with pytest.raises(DataError, match="id of an earlier one: 1"):
        blocks("b", ["x"], ["a"])
