from __future__ import annotations

import numpy as np
import pytest

from partly.data import read_scores, write_scores
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
