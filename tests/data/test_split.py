from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partly import Hierarchy
from partly.data import is_split, read_split
from partly.data.split import held_out
from partly.errors import DataError
from partly.scenarios import coarse_only

ARRAYS = {
    "features_train": np.array([[1, 2], [3, 4], [5, 6]], np.float16),
    "labels_train": np.array([[1, 0], [0, 1], [0, 0]], np.uint8),
    "features_test": np.array([[7, 8]], np.float16),
    "labels_test": np.array([[1, 1]], np.uint8),
    "names": np.array(["cat", "dog"]),
}
DATA = Path(__file__).parents[3] / "shared" / "data"


def refusal(path, **arrays) -> str:
    np.savez(path, **ARRAYS | arrays)
    with pytest.raises(DataError) as told:
        read_split(path)
    assert str(told.value).startswith(f"{path}: ")
    return str(told.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "set.npz"


def test_both_parts(file):
    np.savez(file, **ARRAYS, more=np.ones(3))
    split = read_split(file)
    assert split.train_x.dtype == split.test_x.dtype == np.float32
    assert split.train_x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert split.test_x.tolist() == [[7, 8]]
    assert split.train.ternary().tolist() == [[1, -1], [-1, 1], [-1, -1]]
    assert split.test.ternary().tolist() == [[1, 1]]
    assert split.train.names == split.test.names == ("cat", "dog")
    assert split.train.ids == ("0", "1", "2")
    assert split.hierarchy is None


def test_ids(file):
    np.savez(file, **ARRAYS, ids_train=np.array(["a", "b", "c"]), ids_test=np.array(["d"]))
    split = read_split(file)
    assert (split.train.ids, split.test.ids) == (("a", "b", "c"), ("d",))


def test_parents(file):
    np.savez(file, **ARRAYS, parents=np.array(["animal", "animal"]))
    split = read_split(file)
    assert split.hierarchy == Hierarchy({"cat": "animal", "dog": "animal"})
    for parents in (["", ""], ["cat", "dog"], ["cat", ""]):
        np.savez(file, **ARRAYS, parents=np.array(parents))
        assert read_split(file).hierarchy is None
    np.savez(file, **ARRAYS, parents=np.array(["", "cat"]))
    assert read_split(file).hierarchy == Hierarchy({"dog": "cat"})
    refusal(file, parents=np.array(["dog", "cat"]))
    assert "1 parents for 2 names" in refusal(file, parents=np.array(["animal"]))


def test_a_label_that_is_its_own_parent(file):
    """It is known where the coarse label of its name is no, like any other below a coarse no; its yes are not."""
    y = np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]], np.uint8)
    names, parents = np.array(["cat", "dog", "person"]), np.array(["animal", "animal", "person"])
    arrays = ARRAYS | {"features_train": np.ones((4, 2)), "labels_train": y, "labels_test": y[:1], "names": names}
    np.savez(file, **arrays, parents=parents)
    split = read_split(file)
    assert dict(split.hierarchy.parents) == {"cat": "animal", "dog": "animal", "person": "person (coarse)"}
    observed = coarse_only(split.train, split.hierarchy, 0, seed=0)
    assert observed.ternary().tolist() == [[0, 0, 0], [0, 0, -1], [-1, -1, 0], [-1, -1, -1]]
    np.savez(file, **arrays, parents=np.array(["animal", "person", "person"]))  # a root of others
    assert dict(read_split(file).hierarchy.parents) == {"cat": "animal", "dog": "person"}


def test_items_that_are_held_out_last():
    last = np.isin(np.arange(20), [3, 5, 11])
    for seed in range(20):
        fit, hold = held_out(20, 0.3, seed, last=last)
        assert len(hold) == 6
        assert not last[hold].any()
        assert sorted([*fit, *hold]) == list(range(20))
        assert last[held_out(20, 0.9, seed, last=last)[1]].sum() == 1  # no others were left
    plain, none = held_out(20, 0.3, 0), held_out(20, 0.3, 0, last=np.zeros(20, bool))
    assert [part.tolist() for part in plain] == [part.tolist() for part in none]


def test_arrays_that_do_not_fit(file):
    assert "3 items in features_train, 1 in labels_train" in refusal(file, labels_train=ARRAYS["labels_test"])
    assert "1 entries are something else" in refusal(file, labels_test=np.array([[1, 2]]))
    assert "features_test: features that are missing" in refusal(file, features_test=np.array([[1, np.nan]]))
    assert "3 names for 2 labels" in refusal(file, names=np.array(["cat", "dog", "cow"]))
    refusal(file, names=np.array(["cat", "Cat"]))


def test_what_a_split_is(file, tmp_path):
    np.savez(file, **ARRAYS)
    assert is_split(file)
    np.savez(file, features=np.ones((2, 2)))
    assert not is_split(file)
    with pytest.raises(DataError, match="there is no array features_train, labels_train, features_test"):
        read_split(file)
    assert not is_split(tmp_path / "labels.csv")
    assert not is_split("scenes")
    with pytest.raises(DataError, match="No such file"):
        is_split(tmp_path / "none.npz")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "train", "test", "features", "labels"),
    [("voc2012", 5717, 5823, 1280, 20), ("scene", 1211, 1196, 294, 6), ("debtags", 8170, 2724, 256, 232)],
)
def test_real_data(name, train, test, features, labels):
    if not (DATA / f"{name}.npz").exists():
        pytest.skip("the real data sets do not lie beside the project")
    split = read_split(DATA / f"{name}.npz")
    assert split.train_x.shape == (train, features)
    assert split.test_x.shape == (test, features)
    assert (split.train.shape, split.test.shape) == ((train, labels), (test, labels))
    assert (split.hierarchy is None) == (name == "scene")
