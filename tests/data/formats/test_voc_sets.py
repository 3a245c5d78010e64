"""Pascal VOC's image sets: a file per label and set."""

from __future__ import annotations

import pytest

from partly import Labels
from partly.data import read_labels, write_labels
from partly.errors import DataError


@pytest.fixture
def main(tmp_path):
    (tmp_path / "train.txt").write_text("a\nb\nc\n")
    (tmp_path / "cat_train.txt").write_text("a  1\nb -1\nc  0\n")
    (tmp_path / "dog_train.txt").write_text("a -1\nc  1\n")
    (tmp_path / "dog_val.txt").write_text("z -1\n")
    return tmp_path


def test_a_set_and_one_label_of_it(main):
    labels = read_labels(main / "train.txt")
    assert (labels.ids, labels.names) == (("a", "b", "c"), ("cat", "dog"))
    assert labels.rows(slice(None)).tolist() == [[1, -1], [-1, 0], [0, 1]]
    one = read_labels(main / "cat_train.txt", uncertain="yes")
    assert (one.ids, one.names, one.rows(slice(None)).tolist()) == (("a", "b", "c"), ("cat",), [[1], [-1], [1]])


def test_what_cannot_be_is_refused(main):
    (main / "dog_train.txt").write_text("a -1\nb 2\n")
    with pytest.raises(DataError, match=r"not 1, -1 or 0: 1\n.*dog_train.txt:2: '2'"):
        read_labels(main / "train.txt")
    (main / "dog_train.txt").write_text("a -1\nb 1 1\n")
    with pytest.raises(DataError, match=r"dog_train.txt:2: 3 words instead of 2"):
        read_labels(main / "train.txt")
    labels = Labels.from_full([[1]], names=["../x"])
    with pytest.raises(DataError, match="labels become file names"):
        write_labels(labels, main / "new.txt", form="voc-sets")
    with pytest.raises(DataError, match="this set already has files of other labels: cat, dog"):
        write_labels(Labels.from_full([[1]], names=["cow"]), main / "train.txt", form="voc-sets")
