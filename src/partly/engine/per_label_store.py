"""Storage of a run that fits one estimator per label: a file per finished label, with a checksummed record.

A file without its record is ignored, so a kill loses one label at most. The record holds the digest of run.json, and a
record of another run is refused.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse as sp

import partly
from partly import atomic_io
from partly.binary_relevance import SideInputs
from partly.engine import checkpoint
from partly.engine.folder import origin, read_description
from partly.errors import CheckpointError
from partly.labels import Labels

KIND = "per-label"
ESTIMATOR = "estimator.skops"  # unfitted, as it was given
SAVED = ("run.json", ESTIMATOR, "label-*", ".lock")  # what a saved model consists of


def recipe_of(estimator: Any, packed: bytes, told: SideInputs, own: dict[str, Any]) -> dict[str, Any]:
    """Return everything that decides such a run besides the data. The estimator is identified by its digest; its plain
    parameters show what differs."""
    kind, parameters = type(estimator), estimator.get_params()
    plain = {name: value for name, value in parameters.items() if value is None or isinstance(value, int | float | str)}
    said: dict[str, Any] = {"weight_unknown": told.weight, "pseudo_labels": told.pseudo, "scores": told.scores}
    said["sample_weight"] = told.sample
    return {
        "estimator": f"{kind.__module__}.{kind.__qualname__}",
        **{f"estimator.{name}": repr(value) for name, value in plain.items()},
        "estimator_sha256": atomic_io.sha256(packed),
        "weight_unknown": told.weight if isinstance(told.weight, float) else None,
        **{f"{name}_sha256": digest_of(v) if isinstance(v, np.ndarray) else None for name, v in said.items()},
        **own,
    }


def describe_labels(recipe: dict[str, Any], x: Any, labels: Labels, features: list[str] | None) -> dict[str, Any]:
    """Return the content of run.json, in the form that `claim` compares."""
    return {
        "format": checkpoint.FORMAT,
        "partly": partly.__version__,
        "kind": KIND,
        "recipe": recipe,
        "labels": list(labels.names),
        "features": features,
        "data": {
            "kind": "sparse" if sp.issparse(x) else "rows",
            "shape": list(getattr(x, "shape", (len(labels),))),
            "sha256": digest_of(x),
            "labels_sha256": labels.digest(),
        },
        "validation": None,
        **origin(),
    }


def read_labels_description(folder: Path) -> dict[str, Any]:
    """Return the description of such a run; refuse another kind of run."""
    description = read_description(folder)
    if description.get("kind") != KIND:
        raise CheckpointError(f"{folder}: here is a run of another kind. partly.Classifier.load reads it.")
    return description


def width_of(description: dict[str, Any]) -> int | None:
    """Return how many numbers an estimator takes, if known; scores of other labels are added to the features."""
    recipe = description["recipe"]
    width: int | None = recipe["features_in"]
    beside = len(description["labels"]) - 1 if recipe["scores_sha256"] is not None else 0
    return None if width is None else width + beside


def write_label(folder: Path, number: int, name: str, content: bytes) -> None:
    path = label_file(folder, number)
    write_whole(path, content)
    record = {"label": name, "run": checkpoint.run_of(folder), "content_sha256": atomic_io.sha256(content)}
    atomic_io.write_checksummed(path.with_suffix(".json"), record)


def read_label(folder: Path, number: int) -> bytes | None:
    """Return the bytes of a finished label; None if it is not finished."""
    path = label_file(folder, number)
    if not path.with_suffix(".json").exists():
        return None
    record = atomic_io.read_checksummed(path.with_suffix(".json"))
    if record.get("run") != checkpoint.run_of(folder):
        raise CheckpointError(
            f"{path}: belongs to another run than run.json. Restore it from a copy, or remove the files of this label "
            "(.skops and .json) and fit again: only this label is fitted anew."
        )
    return read_whole(path, str(record.get("content_sha256")))


def label_file(folder: Path, number: int) -> Path:
    return folder / f"label-{number:05d}.skops"


def write_whole(path: Path, content: bytes) -> None:
    with atomic_io.disk_errors(path.parent), atomic_io.atomic_write(path) as file:
        file.write(content)


def read_whole(path: Path, sha256: str) -> bytes:
    content = b""
    if path.is_file():
        with atomic_io.open_regular(path) as file:
            content = file.read()
    if atomic_io.sha256(content) != sha256:
        raise CheckpointError(
            f"{path}: missing or damaged (its checksum does not match). Restore it from a copy, or remove the files of "
            "this label (.skops and .json) and fit again: only this label is fitted anew."
        )
    return content


def digest_of(x: Any) -> str:
    """Return the SHA-256 of training items: an array, a sparse matrix, a table or a list of texts."""
    sha = hashlib.sha256()
    for name, part in _parts(x):
        sha.update(f"{name} {part.dtype.str} {part.shape}".encode())
        if part.dtype.kind in "OUST":  # what is no number, one after the other
            for value in part.ravel().tolist():
                text = repr(value).encode(errors="surrogatepass")
                sha.update(len(text).to_bytes(8, "little") + text)
        else:
            sha.update(np.ascontiguousarray(part).data)
    return sha.hexdigest()


def _parts(x: Any) -> list[tuple[str, Any]]:
    if sp.issparse(x):
        rows: Any = sp.csr_array(cast(Any, x))
        return [(name, getattr(rows, name)) for name in ("indptr", "indices", "data")]
    if hasattr(x, "columns"):
        return [(str(name), np.asarray(x[name])) for name in x.columns]
    return [("", np.asarray(x))]
