"""A data set with a train and a test part in an `.npz` file: features_train, labels_train, features_test, labels_test
and names.

The labels are complete, 1 yes and 0 no. Optional arrays are ids_train, ids_test and parents (of each label, or ''). A
label that is its own parent and has no other children gets a coarse parent of its own, such as "person (coarse)".
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
    texts = {key: as_text(arrays, key, path) for key in arrays if key not in PARTS}
    hierarchy = _hierarchy(texts, path) if "parents" in texts else None
    train, test = (_part(part, arrays, texts, path) for part in ("train", "test"))
    return Dataset(train.items, train.labels, test=test, hierarchy=hierarchy)


def write(data: Dataset, path: Path) -> None:
    """Write both parts, which must be completely labeled features."""
    if data.test is None:
        raise DataError(f"{path}: this format needs a test part, and the data set has none.")
    if data.test.labels.names != data.labels.names:
        raise DataError(f"{path}: the test part has other labels than the train part, or in another order.")
    unknown = set() if data.hierarchy is None else set(data.hierarchy.parents) - set(data.labels.names)
    if unknown:
        raise DataError(
            f"{path}: {len(unknown)} names of the hierarchy are not labels" + listing(sorted(unknown), len(unknown))
        )
    arrays: Arrays = {"names": np.array(data.labels.names, np.str_)}
    for part, dataset in (("train", data), ("test", data.test)):
        if dataset.labels.summary()["unknown"] or dataset.items.kind != "features":
            raise DataError(f"{path}: this format holds features with complete labels, unlike the {part} part.")
        refuse_unwritable(dataset.labels.ids, dataset.labels.names, path)
        if isinstance(dataset.items, SparseRows):
            raise DataError(f"{path}: this format holds dense features; write sparse ones to another format.")
        arrays[f"features_{part}"] = dataset.items.take(slice(None)).numpy()
        arrays[f"labels_{part}"] = (dataset.labels.rows(slice(None)) == 1).astype(np.uint8)
        arrays[f"ids_{part}"] = np.array(dataset.labels.ids, np.str_)
    if data.hierarchy is not None:
        parents = data.hierarchy.single_parents(f"{path}: this format")
        arrays["parents"] = np.array([parents.get(name, "") for name in data.labels.names], np.str_)
    with atomic_output(path) as file:
        np.savez_compressed(file, **arrays)


def _part(part: str, arrays: Arrays, texts: dict[str, list[str]], path: Path) -> Dataset:
    items = features(arrays[f"features_{part}"], f"{path}: features_{part}")
    with error_prefix(path):
        labels = Labels.from_full(arrays[f"labels_{part}"], names=texts["names"], ids=texts.get(f"ids_{part}"))
    if len(items) != len(labels):
        raise DataError(f"{path}: {len(items)} items in features_{part}, {len(labels)} in labels_{part}.")
    return Dataset(items, labels)


def _hierarchy(texts: dict[str, list[str]], path: Path) -> Hierarchy | None:
    names, parents = texts["names"], texts["parents"]
    if len(names) != len(parents):
        raise DataError(f"{path}: {len(parents)} parents for {len(names)} names.")
    pairs = {child: parent for child, parent in zip(names, parents, strict=True) if parent not in ("", child)}
    alone = {name for name, parent in zip(names, parents, strict=True) if name == parent} - set(pairs.values())
    with error_prefix(path):
        return Hierarchy(pairs | {name: f"{name} (coarse)" for name in names if name in alone}) if pairs else None


FORMAT = DatasetFormat("dataset", recognizes, read, write, suffixes=SUFFIXES)
