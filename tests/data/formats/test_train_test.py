from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partly import Dataset, Hierarchy, Labels
from partly.data import LabelSemantics, is_whole, read, write
from partly.data.formats import train_test
from partly.errors import DataError
from partly.items import as_items
from partly.scenarios import coarse_only

ARRAYS = {
    "features_train": np.array([[1, 2], [3, 4], [5, 6]], np.float16),
    "labels_train": np.array([[1, 0], [0, 1], [0, 0]], np.uint8),
    "features_test": np.array([[7, 8]], np.float16),
    "labels_test": np.array([[1, 1]], np.uint8),
    "names": np.array(["cat", "dog"]),
}
DATA = Path(__file__).parents[4] / "shared" / "data"


def refusal(path, **arrays) -> str:
    np.savez(path, **ARRAYS | arrays)
    with pytest.raises(DataError) as told:
        read(path)
    assert str(told.value).startswith(f"{path}: ")
    return str(told.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "set.npz"


def test_both_parts(file):
    np.savez(file, **ARRAYS, more=np.ones(3))
    data = read(file)
    assert data.items.array.dtype == data.test.items.array.dtype == np.float32
    assert data.items.array.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.test.items.array.tolist() == [[7, 8]]
    assert data.labels.ternary().tolist() == [[1, -1], [-1, 1], [-1, -1]]
    assert data.test.labels.ternary().tolist() == [[1, 1]]
    assert data.labels.names == data.test.labels.names == ("cat", "dog")
    assert data.labels.ids == ("0", "1", "2")
    assert data.hierarchy is None
    assert data.truth is None


def test_ids(file):
    np.savez(file, **ARRAYS, ids_train=np.array(["a", "b", "c"]), ids_test=np.array(["d"]))
    data = read(file)
    assert (data.labels.ids, data.test.labels.ids) == (("a", "b", "c"), ("d",))


def test_parents(file):
    np.savez(file, **ARRAYS, parents=np.array(["animal", "animal"]))
    data = read(file)
    assert data.hierarchy == Hierarchy({"cat": "animal", "dog": "animal"})
    for parents in (["", ""], ["cat", "dog"], ["cat", ""]):
        np.savez(file, **ARRAYS, parents=np.array(parents))
        assert read(file).hierarchy is None
    np.savez(file, **ARRAYS, parents=np.array(["", "cat"]))
    assert read(file).hierarchy == Hierarchy({"dog": "cat"})
    refusal(file, parents=np.array(["dog", "cat"]))
    assert "1 parents for 2 names" in refusal(file, parents=np.array(["animal"]))


def test_a_label_that_is_its_own_parent(file):
    """It is known where the coarse label of its name is no, like any other below a coarse no; its yes are not."""
    y = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]], np.uint8)
    names, parents = np.array(["cat", "dog", "person"]), np.array(["animal", "animal", "person"])
    arrays = ARRAYS | {"features_train": np.ones((4, 2)), "labels_train": y, "labels_test": y[:1], "names": names}
    np.savez(file, **arrays, parents=parents)
    data = read(file)
    assert dict(data.hierarchy.parents) == {"cat": "animal", "dog": "animal", "person": "person (coarse)"}
    observed = coarse_only(data.labels, data.hierarchy, 0, seed=0)
    assert observed.ternary().tolist() == [[0, 0, 0], [0, 0, -1], [-1, -1, 0], [-1, -1, -1]]
    np.savez(file, **arrays, parents=np.array(["animal", "person", "person"]))  # a root of others
    assert dict(read(file).hierarchy.parents) == {"cat": "animal", "dog": "person"}


def test_arrays_that_do_not_fit(file):
    assert "3 items in features_train, 1 in labels_train" in refusal(file, labels_train=ARRAYS["labels_test"])
    assert "1 entries are something else" in refusal(file, labels_test=np.array([[1, 2]]))
    missing = refusal(file, features_test=np.array([[1, np.nan]]))
    assert "features_test: 1 of 2 features are missing" in missing
    assert "\n  item 0, feature 1: nan" in missing
    assert "3 names for 2 labels" in refusal(file, names=np.array(["cat", "dog", "cow"]))
    refusal(file, names=np.array(["cat", "Cat"]))


def test_what_has_both_parts(file, tmp_path):
    np.savez(file, **ARRAYS)
    assert train_test.recognizes(file)
    assert is_whole(file)
    np.savez(file, features=np.ones((2, 2)))
    assert not train_test.recognizes(file)
    with pytest.raises(DataError, match="there is no array features_train, labels_train, features_test"):
        train_test.read(file, LabelSemantics())
    assert not train_test.recognizes(tmp_path / "labels.csv")
    assert not train_test.recognizes(Path("scenes"))
    with pytest.raises(DataError, match="No such file"):
        read(tmp_path / "none.npz")
    for name in ("folder.npz", "pipe.npz"):
        (os.mkdir if name == "folder.npz" else os.mkfifo)(tmp_path / name)
        with pytest.raises(DataError, match="not a regular file"):
            read(tmp_path / name)
    file.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"set\.npz: cannot be read"):
        read(file)


# ---------------------------------------------------------------- writing


@st.composite
def some_sets(draw):
    """Features and complete labels in two parts, with ids or without, under a hierarchy or none."""
    width, names = draw(st.integers(1, 3)), draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))

    def part(word):
        count = draw(st.integers(1, 4))
        x = draw(arrays(np.float32, (count, width), elements=st.floats(-9, 9, width=32)))
        ids = draw(st.sampled_from([None, [f"{word} {i}\n" for i in range(count)]]))
        return as_items(x), Labels.from_full(draw(arrays(bool, (count, len(names)))), names=names, ids=ids)

    parents = {name: draw(st.sampled_from(["x", "y", f"{name} (coarse)"])) for name in names if draw(st.booleans())}
    hierarchy = Hierarchy(parents) if parents else None
    return Dataset(*part("train"), test=Dataset(*part("test")), hierarchy=hierarchy)


@given(data=some_sets())
@settings(max_examples=25)
def test_write_then_read_is_the_identity(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("files") / "set.npz"
    write(data, path)
    again = read(path)
    for one, other in ((data, again), (data.test, again.test)):
        assert other.labels == one.labels
        assert other.items.digest() == one.items.digest()
    assert again.hierarchy == data.hierarchy
    assert again.digest == data.digest
    assert os.listdir(path.parent) == [path.name]


def small(**changed):
    items, labels = as_items(np.eye(2)), Labels.from_full([[1, 0], [0, 1]], names=["cat", "dog"])
    return replace(Dataset(items, labels, test=Dataset(items, labels)), **changed)


@pytest.mark.parametrize(
    "parents",
    [
        {"cat": "feline", "feline": "animal", "dog": "animal"},  # a name between two others that is no label
        {"cat": "animal", "lion": "animal"},  # a child that is no label
    ],
)
def test_a_hierarchy_comes_back_whole_or_is_refused(file, parents):
    try:
        write(small(hierarchy=Hierarchy(parents)), file)
    except DataError:
        assert not file.exists()
    else:
        assert read(file).hierarchy == Hierarchy(parents)


def test_what_is_not_complete_is_not_written(file):
    gaps = Labels.from_ternary([[1, 0], [0, 1]], names=["cat", "dog"])
    with pytest.raises(DataError, match=r"set\.npz: .* complete labels, unlike the train part"):
        write(small(labels=gaps), file)
    with pytest.raises(DataError, match="unlike the test part"):
        write(small(test=small(labels=gaps, test=None)), file)
    with pytest.raises(DataError, match=r"set\.npz: this format needs a test part, and the data set has none"):
        train_test.write(small(test=None), file)
    assert not file.exists()


@pytest.mark.parametrize("word", ["a\0", "\ud800"])
def test_words_that_would_not_come_back_are_not_written(file, word):
    for words in ({"names": [word, "dog"]}, {"names": ["cat", "dog"], "ids": [word, "b"]}):
        labels = Labels.from_full([[1, 0], [0, 1]], **words)
        with pytest.raises(DataError, match="not valid Unicode: 1"):
            write(small(labels=labels, test=small(labels=labels, test=None)), file)
    assert not file.exists()


def test_parts_with_other_labels_are_not_written(file):
    other = Labels.from_full([[1, 0], [0, 1]], names=["dog", "cat"])
    with pytest.raises(DataError, match=r"set\.npz: "):
        write(small(test=small(labels=other, test=None)), file)
    assert not file.exists()


def test_sparse_rows_are_not_made_dense_as_a_whole(file, monkeypatch):
    """They are refused, or come back as they are."""
    rows = []
    toarray = sp.csr_array.toarray
    monkeypatch.setattr(sp.csr_array, "toarray", lambda self, *more: rows.append(self.shape[0]) or toarray(self, *more))
    sparse = as_items(sp.eye_array(40, 30))
    labels = Labels.from_full(np.ones((40, 2)))
    try:
        write(Dataset(sparse, labels, test=Dataset(sparse, labels)), file)
    except DataError:
        assert not file.exists()
    assert max(rows, default=0) < 40


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "test", "features", "labels"),
    [("voc2012", 5717, 5823, 1280, 20), ("scene", 1211, 1196, 294, 6), ("debtags", 8170, 2724, 256, 232)],
)
def test_real_data(name, train, test, features, labels):
    if not (DATA / f"{name}.npz").exists():
        pytest.skip("the real data sets do not lie beside the project")
    data = read(DATA / f"{name}.npz")
    assert data.items.array.shape == (train, features)
    assert data.test.items.array.shape == (test, features)
    assert (data.labels.shape, data.test.labels.shape) == ((train, labels), (test, labels))
    assert (data.hierarchy is None) == (name == "scene")
