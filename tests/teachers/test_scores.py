"""Scores from files and arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from partly import Labels, items
from partly.errors import DataError
from partly.teachers import Scores

NAN = np.nan
IDS, NAMES = ["a", "b", "c"], ["cat", "dog"]
EXPECTED = np.array([[0.1, 0.2], [0.3, NAN], [0.5, 0.6]], np.float32)
X = items.features(np.zeros((3, 2)))
LABELS = Labels.from_nan(np.full((3, 2), NAN), names=NAMES, ids=IDS)


def wide() -> pd.DataFrame:
    """The same scores with rows and columns in another order."""
    table = pd.DataFrame(EXPECTED[[2, 0, 1]][:, [1, 0]], columns=["dog", "cat"])
    return table.assign(item=["c", "a", "b"])[["item", "dog", "cat"]]


def written(folder: Path, kind: str) -> Path:
    path = folder / f"scores.{kind}"
    if kind == "csv":
        wide().to_csv(path, index=False)
    elif kind == "parquet":
        wide().to_parquet(path, index=False)
    elif kind == "long.csv":
        path.write_text("item,label,score\nb,cat,0.3\na,cat,0.1\na,dog,0.2\nc,dog,0.6\nc,cat,0.5\nb,dog,\n")
    elif kind == "long.parquet":
        long = wide().melt("item", var_name="label", value_name="probability").dropna()
        long.to_parquet(path, index=False)
    else:
        np.savez(path, scores=EXPECTED[[2, 0, 1]], ids=["c", "a", "b"], names=NAMES)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "long.csv", "long.parquet", "npz"])
def test_files_are_matched_by_id_and_name(tmp_path: Path, kind: str) -> None:
    np.testing.assert_array_equal(Scores(written(tmp_path, kind)).scores(X, LABELS), EXPECTED)


def test_arrays_count_by_position_and_tables_by_index() -> None:
    np.testing.assert_array_equal(Scores(EXPECTED).scores(X, NAMES), EXPECTED)
    np.testing.assert_array_equal(Scores(wide().set_index("item")).scores(X, LABELS), EXPECTED)
    np.testing.assert_array_equal(Scores(EXPECTED.tolist()).scores(X, LABELS), EXPECTED)


def test_a_file_may_hold_more_items_and_lack_some_labels(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("item,dog\nz,1\na,2\nb,3\nc,4\n")
    np.testing.assert_array_equal(Scores(path).scores(X, LABELS), [[NAN, 2], [NAN, 3], [NAN, 4]])


def test_other_ids_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("item,cat,dog\na,1,2\nB,1,2\nc,1,2\n")
    with pytest.raises(DataError, match=r"scores.csv: 1 of the 3 items have no scores.*\n  'B'"):
        Scores(path).scores(X, LABELS)


def test_a_file_with_gaps_may_hold_other_items_but_no_misspelled_ones(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("item,cat,dog\na,1,2\nz,1,2\nc,3,4\n")
    np.testing.assert_array_equal(Scores(path).scores(X, LABELS), [[1, 2], [NAN, NAN], [3, 4]])
    for misspelled in ("B", "b.jpg", "photos/b", " b"):
        path.write_text(f"item,cat,dog\na,1,2\nz,1,2\nc,3,4\n{misspelled},1,2\n")
        with pytest.raises(DataError, match="holds 1 items that are not in the data"):
            Scores(path).scores(X, LABELS)
    path.write_text("item,cat,dog\na,1,2\ny,1,2\nz,3,4\n")
    with pytest.raises(DataError, match="2 of the 3 items have no scores, and it holds 2"):
        Scores(path).scores(X, LABELS)


def test_other_labels_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("item,cat,dgo\na,1,2\nb,1,2\nc,1,2\n")
    with pytest.raises(DataError, match=r"1 of the 2 labels have no scores.*\n  'dgo'. Did you mean 'dog'"):
        Scores(path).scores(X, LABELS)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    for text, message in (
        ("name,cat\na,1\n", "no column 'item'"),
        ("item,cat\na,1\na,2\n", "occur more than once"),
        ("item,cat\na,much\n", "not numbers"),
        ("item,label,score\na,cat,1\na,cat,2\n", "listed more than once"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            Scores(path).scores(X, LABELS)
    with pytest.raises(DataError, match="shape"):
        Scores(np.zeros(3))
    with pytest.raises(DataError, match="scores of 2 items, but the data has 3"):
        Scores(np.zeros((2, 2))).scores(X, NAMES)
    with pytest.raises(DataError, match="scores of 3 labels, but the data has 2"):
        Scores(np.zeros((3, 3))).scores(X, NAMES)


def test_infinite_scores_are_no_opinion() -> None:
    assert np.isnan(Scores([[np.inf, 1.0]]).scores(X[:1], NAMES)[0, 0])
