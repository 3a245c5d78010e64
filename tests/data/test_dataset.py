"""A data set: its parts fit each other, some items of it are one again, and what `read` makes of one file or of two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import partly
from partly import Dataset, Hierarchy, Labels
from partly.data import is_whole, split_holdout, write, write_labels
from partly.data.formats.scenes import scenes
from partly.errors import DataError, SettingError
from partly.items import Arrays, as_items

X = np.arange(8, dtype=np.float32).reshape(4, 2)
TRUTH = Labels.from_full([[1, 0], [0, 1], [1, 1], [0, 0]], names=["cat", "dog"], ids=["w", "x", "y", "z"])
OBSERVED = Labels.from_ternary([[0, -1], [0, 0], [1, 0]], names=["cat", "dog"], ids=["y", "x", "w"])
TEST = Dataset(as_items(X[:2] + 10), Labels.from_full([[1, 0], [0, 1]], names=["cat", "dog"], ids=["t", "u"]))


def whole() -> Dataset:
    return Dataset(as_items(X), TRUTH, test=TEST, hierarchy=Hierarchy({"cat": "animal", "dog": "animal"}))


def x_of(data: Dataset) -> list[list[float]]:
    return data.items.take(slice(None)).tolist()


def test_parts_must_fit() -> None:
    with pytest.raises(DataError, match="4 items, but labels of 3"):
        Dataset(as_items(X), TRUTH[:3])
    with pytest.raises(DataError, match="4 items, but truth of 3"):
        Dataset(as_items(X), TRUTH, truth=TRUTH[:3])


@pytest.mark.parametrize("index", [slice(1, 3), np.array([2, 0]), np.array([True, False, True, False])])
def test_some_items(index: slice | np.ndarray) -> None:
    data = replace(whole(), truth=TRUTH)
    some = data[index]
    assert x_of(some) == X[index].tolist()
    assert some.labels == some.truth == TRUTH[index]
    assert (some.test, some.hierarchy) == (data.test, data.hierarchy)
    assert whole()[index].truth is None


def test_the_digest_is_of_what_is_learned_from_or_tested_on() -> None:
    changed = TRUTH.with_entries([0], [0], [-1])
    others = [
        whole(),
        replace(whole(), items=as_items(X + 1)),
        replace(whole(), labels=changed),
        replace(whole(), test=None),
        replace(whole(), test=replace(TEST, items=as_items(X[:2]))),
        replace(whole(), test=replace(TEST, labels=TEST.labels.with_entries([0], [0], [0]))),
    ]
    assert len({data.digest for data in others}) == len(others)
    assert whole().digest == replace(whole(), truth=changed, hierarchy=None).digest
    assert len(whole().digest) == 16


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_items_and_labels_are_matched_by_id(tmp_path: Path, suffix: str) -> None:
    write(Dataset(as_items(X), TRUTH), tmp_path / f"x.{suffix}")
    write_labels(OBSERVED, tmp_path / "labels.csv")
    data = partly.read(tmp_path / f"x.{suffix}", tmp_path / "labels.csv")
    assert data.labels == OBSERVED
    assert x_of(data) == X[[2, 1, 0]].tolist()
    assert data.truth is None
    assert data.test is None
    assert data.hierarchy is None


def test_of_a_mapped_file_the_ids_are_positions(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    write_labels(Labels.from_ternary([[1], [-1]], names=["cat"], ids=["3", "1"]), tmp_path / "labels.csv")
    data = partly.read(str(tmp_path / "x.npy"), str(tmp_path / "labels.csv"))
    assert isinstance(data.items, Arrays)
    assert isinstance(data.items.array, np.memmap)
    assert data.labels.ids == ("3", "1")
    assert x_of(data) == X[[3, 1]].tolist()


def test_items_that_have_no_features_are_all_named(tmp_path: Path) -> None:
    write(Dataset(as_items(X), TRUTH), tmp_path / "x.csv")
    write_labels(Labels.from_ternary([[1]] * 3, names=["cat"], ids=["w", "W", "v"]), tmp_path / "labels.csv")
    with pytest.raises(DataError) as told:
        partly.read(tmp_path / "x.csv", tmp_path / "labels.csv")
    assert str(told.value) == f"{tmp_path / 'x.csv'}: 2 of the 3 items are not in it\n  'W'\n  'v'"


def test_items_alone_have_ids_and_no_labels(tmp_path: Path) -> None:
    write(Dataset(as_items(X), TRUTH), tmp_path / "x.csv")
    data = partly.read(tmp_path / "x.csv")
    assert data.labels.shape == (4, 0)
    assert data.labels.ids == ("w", "x", "y", "z")


def test_labels_of_a_whole_set_are_observed_and_its_own_are_the_truth(tmp_path: Path) -> None:
    write(whole(), tmp_path / "set.npz")
    write_labels(OBSERVED, tmp_path / "labels.npz")
    data = partly.read(tmp_path / "set.npz", tmp_path / "labels.npz")
    assert data.labels == OBSERVED
    assert data.truth == TRUTH[[2, 1, 0]]
    assert x_of(data) == X[[2, 1, 0]].tolist()
    assert data.test is not None
    assert data.test.labels == TEST.labels
    assert data.hierarchy == whole().hierarchy
    assert partly.read(tmp_path / "set.npz").truth is None


def test_a_hierarchy_in_a_file_of_its_own(tmp_path: Path) -> None:
    pd.DataFrame({"child": ["cat"], "parent": ["pet"]}).to_csv(tmp_path / "parents.csv", index=False)
    write(whole(), tmp_path / "set.npz")
    np.save(tmp_path / "x.npy", X)
    for name in ("set.npz", "x.npy"):
        assert partly.read(tmp_path / name, hierarchy=tmp_path / "parents.csv").hierarchy == Hierarchy({"cat": "pet"})


def test_what_is_a_data_set_by_itself(tmp_path: Path) -> None:
    assert is_whole("scenes")
    assert is_whole("scenes-coarse")
    write(whole(), tmp_path / "set.npz")
    write(replace(whole(), test=None), tmp_path / "x.npz")
    assert is_whole(tmp_path / "set.npz")
    for name in ("x.npz", "none.npz", "labels.csv"):
        assert not is_whole(tmp_path / name)
    with pytest.raises(DataError, match="unknown suffix ''"):
        partly.read("scene")


# ---------------------------------------------------------------- writing


def test_what_has_a_test_part_goes_to_npz_alone(tmp_path: Path) -> None:
    for suffix in ("csv", "parquet", "npy"):
        with pytest.raises(DataError, match=r"no format writes dataset to such a file\. Available: .*\.npz"):
            write(whole(), tmp_path / f"a.{suffix}")
    with pytest.raises(DataError, match="cannot hold a test part"):
        write(whole(), tmp_path / "a.svm")
    with pytest.raises(DataError, match=r"no format writes items to such a file\. Available: "):
        write(Dataset(as_items(X), TRUTH), tmp_path / "a.pt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy", "npz"])
def test_pictures_are_no_features(tmp_path: Path, suffix: str) -> None:
    data = scenes(train=3, test=2)
    for one in (data, replace(data, test=None)) if suffix == "npz" else (replace(data, test=None),):
        with pytest.raises(DataError, match="features"):
            write(one, tmp_path / f"a.{suffix}")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------- held out


def test_items_that_are_held_out_last() -> None:
    last = np.isin(np.arange(20), [3, 5, 11])
    for seed in range(20):
        fit, hold = split_holdout(20, 0.3, seed, last=last)
        assert len(hold) == 6
        assert not last[hold].any()
        assert sorted([*fit, *hold]) == list(range(20))
        assert last[split_holdout(20, 0.9, seed, last=last)[1]].sum() == 1  # no others were left
    plain, none = split_holdout(20, 0.3, 0), split_holdout(20, 0.3, 0, last=np.zeros(20, bool))
    assert [part.tolist() for part in plain] == [part.tolist() for part in none]


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, float("nan")])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(SettingError, match="at least 0 and below 1"):
        split_holdout(20, share, 0)


def test_labels_beside_a_whole_set_take_its_order_of_names(tmp_path):
    parts = {f"features_{part}": np.eye(3, 2) for part in ("train", "test")}
    parts |= {f"labels_{part}": np.array([[1, 0], [0, 1], [1, 1]]) for part in ("train", "test")}
    np.savez(tmp_path / "set.npz", **parts, names=np.array(["cat", "dog"]))
    (tmp_path / "some.csv").write_text("item,dog,cat\n2,,1\n0,0,\n")
    data = partly.read(tmp_path / "set.npz", labels=tmp_path / "some.csv")
    assert data.labels.names == data.truth.names == data.test.labels.names == ("cat", "dog")
    assert data.labels.ternary().tolist() == [[1, 0], [0, -1]]
    assert data.truth.ternary().tolist() == [[1, 1], [1, -1]]


def test_items_of_which_the_labels_say_nothing_are_beside_the_others(tmp_path: Path) -> None:
    """Those that are listed as the labels have them, and in `with_unlabelled` the others behind them, all unknown."""
    (tmp_path / "x.csv").write_text("item,f\na,1\nb,2\nc,3\nd,4\n")
    (tmp_path / "y.csv").write_text("item,cat,split\nd,1,test\nc,0,train\na,,train\n")
    data = partly.read(tmp_path / "x.csv", labels=tmp_path / "y.csv")
    assert (data.labels.ids, x_of(data), data.test.labels.ids) == (("c", "a"), [[3.0], [1.0]], ("d",))
    more = data.include_unlabelled()
    assert (more.labels.ids, x_of(more)) == (("c", "a", "b"), [[3.0], [1.0], [2.0]])
    assert more.labels.ternary().tolist() == [[-1], [0], [0]]
    assert (data.unlabelled_rows.tolist(), len(more.unlabelled_rows), more.test) == ([2], 0, data.test)
    (tmp_path / "y.csv").write_text("item,cat\n" + "".join(f"{i},1\n" for i in "abcd"))
    assert partly.read(tmp_path / "x.csv", labels=tmp_path / "y.csv").with_unlabelled is None


def test_former_names_of_a_dataset_still_work_and_warn() -> None:
    data = scenes(train=3, test=2)
    with pytest.warns(DeprecationWarning, match="Dataset.wider is now Dataset.with_unlabelled"):
        assert data.wider is None
    with pytest.warns(DeprecationWarning, match="include_unlabelled"):
        assert len(data.widened().labels) == 3
    with pytest.warns(DeprecationWarning, match="unlabelled_rows"):
        assert len(data.unlisted) == 0
    with pytest.raises(AttributeError, match="'unknown_name'"):
        _ = data.unknown_name
