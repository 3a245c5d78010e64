"""Which items are to test on, where the labels say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partly.data import read, read_labels
from partly.errors import DataError

LABELS = "item,split,a\n2,test,1\n0,train,\n1,train,0\n"


@pytest.fixture
def items(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", np.arange(6).reshape(3, 2))
    return tmp_path / "x.npy"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_test_part(tmp_path: Path, items: Path, form: str) -> None:
    (tmp_path / "labels.csv").write_text(LABELS)
    pq.write_table(
        pa.table({"item": ["2", "0", "1"], "split": ["test", "train", "train"], "a": [1, None, 0]}),
        tmp_path / "labels.parquet",
    )
    data = read(items, tmp_path / f"labels.{form}")
    assert data.labels.names == ("a",)
    assert data.labels.ids == ("0", "1")
    assert data.items.take(slice(None)).tolist() == [[0, 1], [2, 3]]
    assert data.test is not None
    assert data.test.labels.ids == ("2",)
    assert data.test.labels.rows(slice(None)).tolist() == [[1]]


def test_a_label_may_be_called_split(tmp_path: Path, items: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,split,a\n2,1,1\n0,,0\n")
    data = read(items, tmp_path / "labels.csv")
    assert data.labels.names == ("split", "a")
    assert data.test is None


def test_other_words_are_refused_with_their_line(tmp_path: Path, items: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,split,a\n2,test,1\n0,dev,0\n")
    assert read_labels(tmp_path / "labels.csv").names == ("a",)
    with pytest.raises(DataError, match=r"not train or test: 1\n  .*labels.csv:3: 'dev'"):
        read(items, tmp_path / "labels.csv")


def test_where_all_are_to_learn_from_there_is_no_test_part(tmp_path: Path, items: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,split,a\n2,train,1\n0,train,0\n")
    data = read(items, tmp_path / "labels.csv")
    assert data.test is None
    assert data.labels.ids == ("2", "0")
