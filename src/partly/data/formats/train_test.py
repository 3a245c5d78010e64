"""A data set with a train and a test part in an `.npz` file: features_train, labels_train, features_test, labels_test
and names.

The labels are complete, 1 yes and 0 no. There may be ids_train and ids_test, and parents: the parent's name of each
label, or '' where it has none. Among labels that have parents, one that is its own parent and nobody else's is the only
child of a coarse label of that name, "person (coarse)": so coarse labels say where it is not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from partly.atomic_io import atomic_output
from partly.data.dataset import Dataset
from partly.data.label_semantics import LabelSemantics
from partly.data.matching import refuse_unwritable
from partly.data.npz import Arrays, as_text, npz_names, read_npz
from partly.data.paths import error_prefix
from partly.data.protocols import DatasetFormat
from partly.errors import DataError, listing
from partly.items import SparseRows, features
from partly.labels import Hierarchy, Labels

SUFFIXES = (".npz",)
PARTS = ("features_train", "labels_train", "features_test", "labels_test")


def recognizes(path: Path) -> bool:
    return path.suffix.lower() == ".npz" and path.is_file() and set(PARTS) <= set(npz_names(path))


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    arrays = read_npz(path, required=(*PARTS, "names"), optional=("parents", "ids_train", "ids_test"))
    words = {key: as_text(arrays, key, path) for key in arrays if key not in PARTS}
    hierarchy = _hierarchy(words, path) if "parents" in words else None
    train, test = (_part(part, arrays, words, path) for part in ("train", "test"))
    return Dataset(train.items, train.labels, test=test, hierarchy=hierarchy)


def write(data: Dataset, path: Path) -> None:
    """Both parts must be completely labelled features."""
    if data.test is None:
        raise DataError(f"{path}: a file of this kind has a test part, and these data have none.")
    if data.test.labels.names != data.labels.names:
        raise DataError(f"{path}: the test part has other labels than the train part, or in another order.")
    lost = set() if data.hierarchy is None else set(data.hierarchy.parents) - set(data.labels.names)
    if lost:
        raise DataError(f"{path}: {len(lost)} names of the hierarchy are no labels" + listing(sorted(lost), len(lost)))
    arrays: Arrays = {"names": np.array(data.labels.names, np.str_)}
    for part, one in (("train", data), ("test", data.test)):
        if one.labels.summary()["unknown"] or one.items.kind != "features":
            raise DataError(f"{path}: holds features with complete labels; the {part} part is not that.")
        refuse_unwritable(one.labels.ids, one.labels.names, path)
        if isinstance(one.items, SparseRows):
            raise DataError(f"{path}: holds dense features; write sparse ones to a file of their own.")
        arrays[f"features_{part}"] = one.items.take(slice(None)).numpy()
        arrays[f"labels_{part}"] = (one.labels.rows(slice(None)) == 1).astype(np.uint8)
        arrays[f"ids_{part}"] = np.array(one.labels.ids, np.str_)
    if data.hierarchy is not None:
        parents = data.hierarchy.parents
        arrays["parents"] = np.array([parents.get(name, "") for name in data.labels.names], np.str_)
    with atomic_output(path) as file:
        np.savez_compressed(file, **arrays)


def _part(part: str, arrays: Arrays, words: dict[str, list[str]], path: Path) -> Dataset:
    items = features(arrays[f"features_{part}"], f"{path}: features_{part}")
    with error_prefix(path):
        labels = Labels.from_full(arrays[f"labels_{part}"], names=words["names"], ids=words.get(f"ids_{part}"))
    if len(items) != len(labels):
        raise DataError(f"{path}: {len(items)} items in features_{part}, {len(labels)} in labels_{part}.")
    return Dataset(items, labels)


def _hierarchy(words: dict[str, list[str]], path: Path) -> Hierarchy | None:
    names, parents = words["names"], words["parents"]
    if len(names) != len(parents):
        raise DataError(f"{path}: {len(parents)} parents for {len(names)} names.")
    pairs = {child: parent for child, parent in zip(names, parents, strict=True) if parent not in ("", child)}
    alone = {name for name, parent in zip(names, parents, strict=True) if name == parent} - set(pairs.values())
    with error_prefix(path):
        return Hierarchy(pairs | {name: f"{name} (coarse)" for name in names if name in alone}) if pairs else None


FORMAT = DatasetFormat("dataset", recognizes, read, write, suffixes=SUFFIXES)
