"""Split: a data set in two parts, one to learn from and one to be tested on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.data.features import Features, as_features
from partly.data.files import PathLike, naming, plain_file
from partly.data.npz import Arrays, as_text, npz_names, read_npz
from partly.errors import DataError, SettingError
from partly.hierarchy import Hierarchy
from partly.labels import Labels

PARTS = ("features_train", "labels_train", "features_test", "labels_test")


@dataclass(frozen=True)
class Split:
    """train_x, test_x: features [N, D] or pictures [N, H, W, 3]; train, test: their labels."""

    train_x: npt.NDArray[Any]
    train: Labels
    test_x: npt.NDArray[Any]
    test: Labels
    hierarchy: Hierarchy | None = None


def held_out(
    items: int, share: float, seed: int, purpose: str = "validation", last: npt.NDArray[np.bool_] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Positions to learn from and positions to hold out, each in order: a function of the seed alone, and of `last`
    where it is given: items [N] that are held out only when no others are left."""
    if not 0 <= share < 1:
        raise SettingError(f"The share to hold out must be at least 0 and below 1; got {share}.")
    order = np.random.default_rng(seed_for(seed, "hold out", purpose)).permutation(items)
    if last is not None:
        order = order[np.argsort(last[order], kind="stable")]
    count = round(share * items)
    return np.sort(order[count:]), np.sort(order[:count])


def is_split(path: PathLike) -> bool:
    """Whether this is an `.npz` file that `read_split` would take."""
    path = Path(path)
    if path.suffix.lower() != ".npz":
        return False
    return set(PARTS) <= set(npz_names(plain_file(path, (".npz",))))


def read_split(path: PathLike) -> Split:
    """An `.npz` with features_train, labels_train, features_test, labels_test and names.

    The labels are complete, 1 yes and 0 no. There may be ids_train and ids_test, and parents: the parent's name
    of each label, or '' where it has none. Among labels that have parents, one that is its own parent and nobody else's
    is the only child of a coarse label of that name, "person (coarse)": so coarse labels say where it is not.
    """
    path = plain_file(path, (".npz",))
    arrays = read_npz(path, required=(*PARTS, "names"), optional=("parents", "ids_train", "ids_test"))
    words = {key: as_text(arrays, key, path) for key in arrays if key not in PARTS}
    hierarchy = _hierarchy(words, path) if "parents" in words else None
    return Split(*_part("train", arrays, words, path), *_part("test", arrays, words, path), hierarchy)


def _part(part: str, arrays: Arrays, words: dict[str, list[str]], path: Path) -> tuple[Features, Labels]:
    x = as_features(arrays[f"features_{part}"], f"{path}: features_{part}")
    with naming(path):
        labels = Labels.from_full(arrays[f"labels_{part}"], names=words["names"], ids=words.get(f"ids_{part}"))
    if len(x) != len(labels):
        raise DataError(f"{path}: {len(x)} items in features_{part}, {len(labels)} in labels_{part}.")
    return x, labels


def _hierarchy(words: dict[str, list[str]], path: Path) -> Hierarchy | None:
    names, parents = words["names"], words["parents"]
    if len(names) != len(parents):
        raise DataError(f"{path}: {len(parents)} parents for {len(names)} names.")
    pairs = {child: parent for child, parent in zip(names, parents, strict=True) if parent not in ("", child)}
    alone = {name for name, parent in zip(names, parents, strict=True) if name == parent} - set(pairs.values())
    with naming(path):
        return Hierarchy(pairs | {name: f"{name} (coarse)" for name in names if name in alone}) if pairs else None
