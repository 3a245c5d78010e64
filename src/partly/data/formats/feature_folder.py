"""A folder of features that `partly features` wrote: a memory-mapped matrix, the ids of the items, and their origin."""

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
        raise DataError(
            f"{path}: {KEY} or {IDS} has unexpected content. Restore it from a copy, or compute the features again."
        )
    if key["format"] != FORMAT_VERSION:
        raise DataError(
            f"{path}: features of format {key['format']}; this version reads {FORMAT_VERSION}. Compute them again."
        )
    if not (path / DIGEST).exists():
        raise DataError(
            f"{path}: only {count_done(path)} of {len(ids)} items have features. Run the same `partly features` again."
        )
    items = map_npy(path / ARRAY)
    if (len(items), *items.shape) != (len(ids), key["width"]):
        raise DataError(
            f"{path}: {len(items)} x {items.shape[0]} features, where {KEY} says {len(ids)} x {key['width']}. "
            "Compute them again."
        )
    return Dataset(PrecomputedFeatures(items, Origin.read(key, _read_fitted(path, key))), empty_labels(ids))


def _read_fitted(path: Path, key: dict[str, Any]) -> dict[str, Tensor]:
    """Read the tensors that the backbone measured on these items."""
    if not key.get("fitted_sha256"):
        return {}
    file = path / FITTED
    if not file.is_file() or sha256_of(file) != key["fitted_sha256"]:
        raise DataError(f"{file}: missing or damaged (its checksum does not match). Compute the features again.")
    return load_file(file)


def count_done(path: Path) -> int:
    """Return how many items have features, counted from the first."""
    try:
        return int(json.loads((path / DONE).read_text("utf-8"))["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


FORMAT = DatasetFormat("items", recognizes, read)
