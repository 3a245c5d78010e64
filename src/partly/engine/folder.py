"""The folder of a run: run.json, which describes it, and the files of a finished run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import partly
from partly import atomic_io, methods
from partly.calibration import Calibration
from partly.config import ResolvedConfig
from partly.engine import checkpoint, schema
from partly.engine.checkpoint import BELIEFS, IDS, OUT_OF_FOLD
from partly.engine.plan import Plan
from partly.engine.resolution import make_config
from partly.engine.training import progress_of
from partly.errors import CheckpointError, listing
from partly.items import Items
from partly.networks.custom_modules import PREFIX, source_digest

SCORES = "scores.json"
CALIBRATION = "calibration.json"
SAVED = ("run.json", "checkpoint-*", CALIBRATION, "teacher.json", ".lock")  # what a saved model consists of


def describe(plan: Plan) -> dict[str, Any]:
    """Return the content of run.json. `run_identity` says which of it decides whether a folder may be resumed."""
    config, items, labels, validation, weights = plan.config, plan.items, plan.labels, plan.validation, plan.weights
    known = {k: v for k, v in labels.summary().items() if not isinstance(v, list)}
    yes, no = labels.counts()
    held_out = None
    if validation is not None:
        held_out = {"sha256": validation.items.digest(), "labels_sha256": validation.labels.digest()}
    return {
        "format": checkpoint.FORMAT,
        "partly": partly.__version__,
        "recipe": config.to_json(),
        **_to_be_given(config),
        **_sources(config),
        **_setting_files(config),
        "labels": list(labels.names),
        "features": None if items.names is None else list(items.names),
        "data": {
            "kind": items.kind,
            "shape": [len(items), *items.shape],
            "sha256": items.digest(),
            "labels_sha256": labels.digest(),
            "known": known,
            **({} if weights is None else {"weights_sha256": digest(torch.tensor(weights))}),
            **_feature_origin(items),
            **_preparation(items),
            "known_by_label": {"yes": yes.tolist(), "no": no.tolist()},
        },
        "validation": held_out,
        **origin(),
    }


def _feature_origin(items: Items) -> dict[str, Any]:
    """Return the origin of features that a backbone computed."""
    origin = items.origin
    return {} if origin is None else {"made_of": origin.plain()}


def _preparation(items: Items) -> dict[str, Any]:
    """Return the encoding of table columns and the conditioning of numbers, where there are any."""
    conditioning, encoding = (items.conditioning or None), items.encoding
    fields: dict[str, Any] = {} if conditioning is None else {"conditioning": conditioning.to_json()}
    return fields | ({} if encoding is None else {"encoding": encoding.to_json()})


def _to_be_given(config: ResolvedConfig) -> dict[str, Any]:
    """Name the caller's own parts of the network, which are needed to load the model."""
    custom = {part: getattr(config, part) for part in ("backbone", "head")}
    custom = {part: name for part, name in custom.items() if name is not None and name.startswith(PREFIX)}
    hint = "only the weights of {} are here; give it again to load: Classifier.load(folder, {}=...)"
    return {"to_be_given": {part: hint.format(name, part) for part, name in custom.items()}} if custom else {}


def _sources(config: ResolvedConfig) -> dict[str, Any]:
    """Return the SHA-256 of source files outside the package: they are part of the run's identity."""
    digests = {f"method {config.method}": methods.find(config.method).source_sha256}
    plugin_names = (config.backbone, config.head)
    digests |= {name: source_digest(name) for name in plugin_names if name is not None and name.startswith(PREFIX)}
    digests = {name: digest for name, digest in digests.items() if digest}
    return {"sources": digests} if digests else {}


def _setting_files(config: ResolvedConfig) -> dict[str, Any]:
    """Return the SHA-256 of files that settings name (label vectors, a graph): they are part of the run's identity."""
    values = (value for part in (config.settings, config.head_settings) for value in part.values())
    named = [value for value in values if isinstance(value, str) and os.path.isfile(value)]
    return {"files": {name: atomic_io.sha256_of(Path(name)) for name in named}} if named else {}


def origin() -> dict[str, Any]:
    """Return machine and time, which may differ when a run is resumed."""
    machine = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cpu": platform.machine(),
        "cores": os.cpu_count(),
    }
    return {"machine": machine, "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def read_description(folder: Path) -> dict[str, Any]:
    """Return the content of run.json; refuse a damaged or invalid file."""
    path = folder / checkpoint.RUN
    if not path.exists():
        raise CheckpointError(f"{folder}: no run here (there is no run.json).")
    description = atomic_io.read_checksummed(path)
    if description.get("format") != checkpoint.FORMAT:
        raise CheckpointError(
            f"{folder}: a run of format {description.get('format')}; this version reads format {checkpoint.FORMAT}. "
            "Train it again, or use the version that wrote it."
        )
    problems = schema.problems(description)
    if problems:
        raise CheckpointError(f"{path}: cannot be{listing(problems, len(problems), 20)}\nRestore it from a copy.")
    return description


def digest(tensor: Tensor) -> str:
    """Return the SHA-256 of values, shape and type."""
    plain = tensor.detach().cpu().contiguous()
    kind = (
        str(plain.dtype) if plain.dtype == torch.bfloat16 else torch.empty(0, dtype=plain.dtype).numpy().dtype.str
    )  # NumPy has no bfloat16
    sha = hashlib.sha256(f"{kind}{tuple(plain.shape)}".encode())
    sha.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return sha.hexdigest()


def claim(folder: Path, description: dict[str, Any]) -> None:
    """Write run.json into a new folder; refuse a folder of another run."""
    if not (folder / checkpoint.RUN).exists():
        atomic_io.write_checksummed(folder / checkpoint.RUN, description)
        return
    as_read = json.loads(json.dumps(description))  # tuples become lists
    here, there = (run_identity(part) for part in (as_read, read_description(folder)))
    differ = [key for key in here | there if here.get(key) != there.get(key)]
    if differ:
        lines = "".join(f"\n  {key}: {there.get(key)!r} there, {here.get(key)!r} now" for key in differ)
        raise CheckpointError(
            f"{folder} holds another run; these differ:{lines}\n"
            "Use another folder, or the same data and settings to go on."
        )


@contextmanager
def overwrite_guard(folder: Path, overwrite: bool, kinds: Sequence[str]) -> Iterator[None]:
    """Let a model be saved into a folder without a run.

    With `overwrite`, a model saved there before is moved aside, and restored if the new one cannot be written. A folder
    that holds other files than `kinds` is never moved: a training run has a history and a report that would be lost.
    """
    if not (folder / "run.json").exists():
        yield
        return
    if not overwrite:
        raise CheckpointError(
            f"{folder}: there is a run in this folder already. Choose another one, or replace it: overwrite=True."
        )
    more = sorted(path.name for path in folder.iterdir() if not any(path.match(kind) for kind in kinds))
    if more:
        raise CheckpointError(
            f"{folder}: holds more than a saved model and is not overwritten: {', '.join(more[:5])}. Take another one."
        )
    aside = folder.with_name(f".{folder.name}.before")
    with atomic_io.locked(folder), atomic_io.disk_errors(folder):
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
        raise
    with atomic_io.disk_errors(folder):
        shutil.rmtree(aside)


def run_identity(description: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal for a run to be resumed: everything but machine and time."""
    defaults = make_config("bce").to_json()  # older versions did not write every key
    flat = {f"recipe.{key}": value for key, value in (defaults | description["recipe"]).items()}
    flat |= {f"data.{key}": description["data"][key] for key in ("kind", "shape", "sha256", "labels_sha256")}
    flat |= {"data.weights_sha256": description["data"].get("weights_sha256")}
    flat |= {f"validation.{key}": value for key, value in (description["validation"] or {}).items()}
    for part in ("files", "sources"):
        flat |= {f"{part}.{key}": value for key, value in description.get(part, {}).items()}
    flat |= {f"asks.{key}": value for key, value in description.get("asks", {}).items()}
    return flat | {key: description.get(key) for key in ("labels", "format", "start")}


# ---------------------------------------------------------------- what a finished run has left


def state_of(folder: Path) -> Mapping[str, Tensor]:
    """Return weights and per-entry state of a run that was finished with `keep_entries`; tensors are read lazily."""
    return read_finished(folder)[1]


def read_beliefs(folder: Path) -> npt.NDArray[np.floating[Any]] | None:
    """Return the beliefs of a finished run about its training entries, [N, L], memory-mapped; None if it has none."""
    record, path = read_finished(folder)[2]["beliefs"], folder / BELIEFS
    if record is None:
        return None
    if not path.is_file() or atomic_io.sha256_of(path) != record["sha256"]:
        raise CheckpointError(f"{path}: missing or damaged (its checksum does not match). Restore it from a copy.")
    beliefs: npt.NDArray[np.floating[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    return beliefs


def read_out_of_fold(folder: Path, name: str = OUT_OF_FOLD) -> npt.NDArray[np.floating[Any]] | None:
    """Return the out-of-fold logits of a finished run, [N, L], memory-mapped; None if it has none."""
    path = folder / f"{name}.npy"
    if not path.with_suffix(".json").exists():
        return None
    record = atomic_io.read_checksummed(path.with_suffix(".json"))
    if record.get("run") != checkpoint.run_of(folder):
        raise CheckpointError(f"{path}: belongs to another run than run.json. Restore it from a copy.")
    if not path.is_file() or atomic_io.sha256_of(path) != record.get("array_sha256"):
        raise CheckpointError(f"{path}: missing or damaged (its checksum does not match). Restore it from a copy.")
    logits: npt.NDArray[np.floating[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    return logits


def read_ids(folder: Path) -> tuple[str, ...]:
    """Return the ids of the training items whose beliefs are in the folder; positions if they had none."""
    record = read_finished(folder)[2]["beliefs"]
    if record["ids"]:
        return tuple(atomic_io.read_checksummed(folder / IDS)["ids"])
    return tuple(map(str, range(record["shape"][0])))


def write_scores(folder: Path, measured: dict[str, Any]) -> None:
    """Write the scores of a run and what they were measured on."""
    with_none = json.loads(json.dumps(measured), parse_constant=lambda word: None)  # JSON knows no NaN
    atomic_io.write_checksummed(folder / SCORES, with_none)


def read_scores(folder: Path) -> dict[str, Any] | None:
    """Return what `write_scores` wrote; None without scores."""
    return atomic_io.read_checksummed(folder / SCORES) if (folder / SCORES).exists() else None


def write_calibration(folder: Path, calibration: Calibration | None) -> None:
    """Write the calibration of a run; None removes it."""
    if calibration is not None:
        atomic_io.write_checksummed(folder / CALIBRATION, calibration.to_dict())
    else:
        atomic_io.remove_file(folder / CALIBRATION)


def read_calibration(folder: Path) -> Calibration | None:
    """Return what `write_calibration` wrote; None without a calibration."""
    path = folder / CALIBRATION
    return Calibration.from_dict(atomic_io.read_checksummed(path)) if path.exists() else None


def read_finished(folder: Path) -> tuple[dict[str, Any], checkpoint.Tensors, dict[str, Any]]:
    """Return description, tensors and record of a finished run."""
    description = read_description(folder)
    if description.get("kind") == "per-label":
        raise CheckpointError(f"{folder}: here is a model of one estimator per label. partly.PerLabel.load reads it.")
    newest = checkpoint.load(folder)
    if newest is None or not progress_of(folder, newest[1]).finished:
        damage = "".join(f"\n  {problem}" for problem in (newest[2] if newest else ()))
        raise CheckpointError(f"{folder}: training has not finished. Start the same command again to go on.{damage}")
    if newest[2]:
        warnings.warn(f"{folder}: took an older copy of the model: {'; '.join(newest[2])}", stacklevel=3)
    return description, newest[0], newest[1]
