"""Score files of other programs, in every shape, order and format, give the same scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from partly import Labels, metrics
from partly.data import ScoreFile, read_scores
from partly.errors import DataError
from partly.labels.scored import gather_known

IDS, NAMES = [f"im{i}.jpg" for i in range(6)], ["cat", "dog", "tree"]
SCORES = np.random.default_rng(0).random((6, 3)).astype(np.float32)
Z = np.array([[1, -1, 0], [0, 1, -1], [1, 0, -1], [-1, 1, 0], [0, -1, 1], [1, -1, 1]])


def truth(ids=IDS):
    return Labels.from_ternary(Z, ids=ids, names=NAMES)


def table(scores=SCORES):
    return pd.DataFrame(scores, pd.Index(IDS, name="item"), NAMES)


def gathered(path, labels, every=True):
    file = ScoreFile(path)
    return gather_known(file.blocks(labels, every), labels), file


def wide(path):
    table()[["tree", "cat", "dog"]].iloc[::-1].reset_index().assign(site="x").to_csv(path, index=False)


def wide_parquet(path):
    table().sample(frac=1, random_state=1).reset_index(names="id").to_parquet(path)


def long(path):
    frame = table().stack().reset_index()
    frame.columns = ["item", "label", "score"]
    frame.sample(frac=1, random_state=1).to_csv(path, index=False)


def long_parquet(path):
    frame = table().stack().reset_index()
    frame.columns = ["item", "label", "probability"]
    frame.to_parquet(path)


def archive(path):
    np.savez(path, scores=SCORES[::-1][:, ::-1], ids=np.array(IDS[::-1]), names=np.array(NAMES[::-1]))


def array(path):
    np.save(path, SCORES)


WRITERS = [
    (wide, "csv"),
    (wide_parquet, "parquet"),
    (long, "csv"),
    (long_parquet, "parquet"),
    (archive, "npz"),
    (array, "npy"),
]


@pytest.mark.parametrize(("write", "suffix"), WRITERS)
def test_every_file_gives_the_same_scores(tmp_path, write, suffix):
    path = tmp_path / f"a.{suffix}"
    write(path)
    found, file = gathered(path, truth())
    np.testing.assert_allclose(found, SCORES, rtol=1e-6)
    assert file.by_position == (suffix == "npy")
    if write not in (wide, array):  # a column of words; no ids
        read = read_scores(path)
        assert sorted(read.ids) == IDS
        assert sorted(read.names) == NAMES
        assert metrics.evaluate(read.to_pandas(), truth())["mAP"] == metrics.evaluate(SCORES, truth())["mAP"]


def test_unknown_entries_need_no_score_but_known_ones_do(tmp_path):
    frame = table().where(Z != 0).stack().reset_index()
    frame.columns = ["item", "label", "score"]
    frame.to_csv(tmp_path / "a.csv", index=False)
    found, file = gathered(tmp_path / "a.csv", truth(), every=False)
    np.testing.assert_allclose(found[Z != 0], SCORES[Z != 0], rtol=1e-6)
    assert file.blank == 5
    with pytest.raises(DataError, match=r"5 entries have no score(.|\n)*item 'im0.jpg', label 'tree'"):
        gathered(tmp_path / "a.csv", truth(), every=True)
    frame.iloc[1:].to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(DataError, match=r"1 entries have no score(.|\n)*item 'im0.jpg', label 'cat'"):
        gathered(tmp_path / "b.csv", truth(), every=False)


def test_what_cannot_be_matched_is_refused(tmp_path):
    long(tmp_path / "a.csv")
    with pytest.raises(DataError, match=r"entries have no score(.|\n)*label 'bush'"):
        gathered(tmp_path / "a.csv", Labels.from_ternary(Z, ids=IDS, names=["cat", "dog", "bush"]))
    with pytest.raises(DataError, match=r"entries have no score(.|\n)*item 'other'"):
        gathered(tmp_path / "a.csv", truth([*IDS[:5], "other"]))
    with pytest.raises(DataError, match="6 of the 6 items are not in it"):
        gathered(tmp_path / "a.csv", truth(list("uvwxyz")))
    wide(tmp_path / "w.csv")
    with pytest.raises(DataError, match="1 of the 3 labels are not in it"):
        gathered(tmp_path / "w.csv", Labels.from_ternary(Z, ids=IDS, names=["cat", "dog", "bush"]))
    np.save(tmp_path / "a.npy", SCORES[:4])
    with pytest.raises(DataError, match="4 items without ids or names, and 6 in the labels"):
        gathered(tmp_path / "a.npy", truth())
    np.save(tmp_path / "b.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read"):
        ScoreFile(tmp_path / "b.npy")
    pd.DataFrame({"item": ["x", "x"], "label": ["a", "a"], "score": [1, 2]}).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(DataError, match="listed more than once"):
        ScoreFile(tmp_path / "c.csv")
