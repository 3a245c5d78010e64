"""A folder of features that `partly features` wrote: a matrix that is mapped, the ids of the items, and what was made
of what.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from partly.atomic_io import read_checksummed, sha256_of
from partly.data.dataset import Dataset, empty_labels
from partly.data.protocols import DatasetFormat
from partly.errors import CheckpointError, DataError
from partly.items import Origin, PrecomputedFeatures, map_npy

FORMAT_VERSION = 2
KEY, IDS, ARRAY, DONE = "features.json", "ids.json", "features.npy", "done.json"
FITTED = "fitted.safetensors"
DIGEST = f"{ARRAY}.sha256"


def recognizes(path: Path) -> bool:
    return (path / KEY).is_file()


def read(path: Path, semantics: object = None) -> Dataset:
    try:
        key, ids = read_checksummed(path / KEY), read_checksummed(path / IDS).get("ids")
    except CheckpointError as error:
        raise DataError(str(error)) from error
    if not isinstance(ids, list) or "format" not in key:
        raise DataError(f"{path}: {KEY} or {IDS} is another file. Restore it from a copy, or make the features again.")
    if key["format"] != FORMAT_VERSION:
        raise DataError(
            f"{path}: features of format {key['format']}; this version reads {FORMAT_VERSION}. Make them again."
        )
    if not (path / DIGEST).exists():
        raise DataError(
            f"{path}: of {len(ids)} items {done(path)} have their features. Start the same `partly features` again."
        )
    items = map_npy(path / ARRAY)
    if (len(items), *items.shape) != (len(ids), key["width"]):
        raise DataError(
            f"{path}: {len(items)} x {items.shape[0]} features, where {KEY} says {len(ids)} x {key['width']}. "
            "Make them again."
        )
    return Dataset(PrecomputedFeatures(items, Origin.read(key, _fitted(path, key))), empty_labels(ids))


def _fitted(path: Path, key: dict[str, Any]) -> dict[str, Tensor]:
    """What the backbone had measured on these items."""
    if not key.get("fitted_sha256"):
        return {}
    file = path / FITTED
    if not file.is_file() or sha256_of(file) != key["fitted_sha256"]:
        raise DataError(f"{file}: missing or damaged (its checksum does not match). Make the features again.")
    return load_file(file)


def done(path: Path) -> int:
    """How many items have their features, from the first on."""
    try:
        return int(json.loads((path / DONE).read_text("utf-8"))["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


FORMAT = DatasetFormat("items", recognizes, read)
