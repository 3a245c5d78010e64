"""Hugging Face `datasets`: objects and folders of the real library."""

from __future__ import annotations

import numpy as np
import pytest

import partly
from partly import Dataset, Labels
from partly.data import read_labels, write
from partly.errors import DataError
from partly.items import texts

datasets = pytest.importorskip("datasets")
NAMES = ["cat", "dog", "cow"]


def lists(**columns):
    classes = datasets.List(datasets.ClassLabel(names=NAMES))
    kinds = {name: classes if name in ("labels", "yes", "no") else datasets.Value("string") for name in columns}
    return datasets.Dataset.from_dict(columns, features=datasets.Features(kinds))


def test_a_list_of_classes_says_what_is_there(tmp_path):
    made = lists(text=["x", "y"], labels=[[0, 2], []])
    with pytest.raises(DataError, match=r"the column 'labels' lists positives.*absent="):
        partly.read(made)
    data = partly.read(made, absent="no")
    assert data.items.kind == "texts"
    assert (data.labels.names, data.labels.ternary().tolist()) == (tuple(NAMES), [[1, -1, 1], [-1, -1, -1]])
    made.select([1, 0]).save_to_disk(str(tmp_path / "saved"))
    assert read_labels(tmp_path / "saved", absent="unknown").rows(slice(None)).tolist() == [[0, 0, 0], [1, 0, 1]]


def test_a_column_for_each_label(tmp_path):
    made = datasets.Dataset.from_dict({"id": ["p", "q"], "features": [[1.0, 2.0], [3.0, 4.0]], "cat": [1, None]})
    data = partly.read(datasets.DatasetDict(train=made, test=made))
    assert data.labels.ternary().tolist() == [[1], [0]]
    assert data.test.items.take(slice(None)).tolist() == [[1, 2], [3, 4]]
    assert data.labels.ids == ("p", "q")
    with pytest.raises(DataError, match=r"not labels \(1, 0 or None\): 1\n.*'age'(.|\n)*remove_columns"):
        partly.read(made.add_column("age", [5, 6]))
    with pytest.raises(DataError, match="has the parts train, other"):
        partly.read(datasets.DatasetDict(train=made, other=made))


def test_a_list_of_one_cell_for_each_label():
    made = datasets.Dataset.from_dict({"text": ["x", "y"], "labels": [[1, 0, None], [None, None, 1]]})
    data = partly.read(made)
    assert (data.labels.names, data.labels.ternary().tolist()) == (("0", "1", "2"), [[1, -1, 0], [0, 0, 1]])
    for lists in ([[1, 0], [1]], [[1, 0], [1, 7]], [[1, 0], None]):  # classes without their names, or nothing known
        with pytest.raises(DataError, match=r"not labels \(1, 0 or None\): 1\n.*'labels'"):
            partly.read(datasets.Dataset.from_dict({"text": ["x", "y"], "labels": lists}))


def test_pictures(tmp_path, monkeypatch):
    from PIL import Image

    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path))
    pictures = [Image.fromarray(np.full((20, 20, 3), grey, np.uint8)) for grey in (10, 200)]
    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=NAMES)}
    made = datasets.Dataset.from_dict({"image": pictures, "label": [1, 0]}, features=datasets.Features(kinds))
    data = partly.read(made, absent="no", size=20)
    assert data.items.take(slice(None)).float().mean((1, 2, 3)).round().tolist() == [10, 200]
    assert data.labels.ternary().tolist() == [[-1, 1, -1], [1, -1, -1]]


def test_texts_are_written(tmp_path):
    data = Dataset(texts(["é x", "y"]), Labels.from_ternary([[1, -1], [0, 0]], names=["a", "b"], ids=["p", "q"]))
    write(data, tmp_path / "saved", form="hugging-face")
    found = datasets.load_from_disk(str(tmp_path / "saved"))
    assert found[0] == {"item": "p", "yes": [0], "no": [1], "text": "é x"}
    assert partly.read(tmp_path / "saved").labels == data.labels


def test_a_list_of_texts_says_what_is_there(tmp_path):
    columns = {"text": ["x", "y", "z"], "tags": [["cat", "dog"], [], None], "url": ["u", "v", "w"]}
    made = datasets.Dataset.from_dict(columns)
    with pytest.raises(DataError, match=r"'tags' lists positives.*--absent unknown or --absent no"):
        partly.read(made)
    assert partly.read(made, absent="no").labels.ternary().tolist() == [[1, 1], [-1, -1], [0, 0]]
    assert partly.read(made, absent="unknown").labels.names == ("cat", "dog")
    made.save_to_disk(tmp_path / "saved")
    assert read_labels(tmp_path / "saved", absent="no", names=["dog", "cat"]).names == ("dog", "cat")


def test_of_several_lists_one_must_be_named():
    columns = {"text": ["x", "y"], "kinds": [["cat"], ["dog"]], "words": [["a"], ["b"]]}
    made = datasets.Dataset.from_dict(columns)
    with pytest.raises(DataError, match=r"kinds, words.*--label-columns"):
        partly.read(made, absent="no")
    assert partly.read(made, absent="no", label_columns="kinds").labels.names == ("cat", "dog")
    with pytest.raises(DataError, match="Did you mean 'kinds'"):
        partly.read(made, absent="no", label_columns="kind")


def test_words_and_own_spellings():
    made = datasets.Dataset.from_dict({"text": ["x", "y"], "cat": ["yes", "-"], "dog": ["N", "?"]})
    with pytest.raises(DataError, match="'cat'"):
        partly.read(made)
    assert partly.read(made, missing="-").labels.ternary().tolist() == [[1, -1], [0, 0]]
