"""One training run: a recipe, the data it is for, and the folder that says exactly what was run on what."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import partly
from partly import catalogue, checkpoint, training
from partly.clock import Clock
from partly.errors import CheckpointError, PartlyError
from partly.labels import Labels
from partly.method import Method, Task
from partly.pool import Pool

MEMORY_SHARE = 0.6  # of RAM that a method's per-entry state may take


@dataclass(frozen=True)
class Recipe:
    """All that decides the bits of a run, beside the data: nothing is left to be chosen later."""

    method: str
    head: str = "mlp"
    epochs: int = 20
    batch_size: int = 128
    lr: float = 1e-3
    weight_decay: float = 0.1
    optimizer: str = "adamw"
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    def build(self, x: Tensor, items: int, labels: int) -> Method:
        """The method, untrained, for items such as x."""
        entry = catalogue.find(self.method)
        task = Task(x, items, labels, self.head, self.optimizer, self.lr, self.weight_decay, seed=self.seed)
        return entry.build(task, self.settings)


@dataclass
class Fitted:
    """What a run leaves behind."""

    recipe: Recipe
    method: Method
    progress: training.Progress
    names: tuple[str, ...]


def fit(
    recipe: Recipe,
    x: Tensor,
    labels: Labels,
    *,
    validation: training.Validation | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    save_seconds: float = training.SAVE_SECONDS,
    watch: training.Watch | None = None,
) -> Fitted:
    """Train by the recipe, or go on where the folder says that it stopped."""
    check_memory(recipe, labels)
    with checkpoint.locked(folder) if folder else nullcontext():
        if folder:
            _claim(folder, describe(recipe, x, labels, validation))
        method = recipe.build(x, *labels.shape).to(device)
        pool = Pool(x, labels, recipe.batch_size, device)
        clock = Clock(recipe.seed, recipe.epochs, pool.steps)
        progress = training.train(
            method, pool, clock, validation=validation, folder=folder, save_seconds=save_seconds, watch=watch
        )
        if folder:
            checkpoint.write_json(folder / "history.json", progress.history)
    return Fitted(recipe, method, progress, labels.names)


def load(folder: Path) -> Fitted:
    """The finished model in a run folder."""
    description = read_description(folder)
    found = checkpoint.load(folder)
    if found is None or not found[1]["progress"]["finished"]:
        raise CheckpointError(f"{folder}: training has not finished. Start the same command again to go on.")
    tensors, record, _ = found
    recipe = Recipe(**description["recipe"])
    shape = description["data"]["shape"]
    method = recipe.build(torch.zeros(2, *shape[1:]), shape[0], len(description["labels"]))
    method.load_state(tensors)
    method.eval()
    return Fitted(recipe, method, training.Progress(**record["progress"]), tuple(description["labels"]))


def save(fitted: Fitted, description: dict[str, Any], folder: Path) -> None:
    """Write a finished model into a folder of its own, in the form that `load` reads."""
    with checkpoint.locked(folder):
        if checkpoint.load(folder) is not None:
            raise CheckpointError(f"{folder}: there is a run in this folder already. Choose another one.")
        checkpoint.write_json(folder / "run.json", description)
        training.save(folder, fitted.method, Clock(fitted.recipe.seed, fitted.recipe.epochs), fitted.progress)


def describe(recipe: Recipe, x: Tensor, labels: Labels, validation: training.Validation | None) -> dict[str, Any]:
    """What is run on what. `_flat` of it decides whether a folder may go on."""
    known = {k: v for k, v in labels.summary().items() if not isinstance(v, list)}
    held_out = None
    if validation is not None:
        held_out = {"sha256": digest(validation.x), "labels_sha256": validation.labels.digest()}
    return {
        "format": checkpoint.FORMAT,
        "partly": partly.__version__,
        "recipe": asdict(recipe),
        "labels": list(labels.names),
        "data": {"shape": list(x.shape), "sha256": digest(x), "labels_sha256": labels.digest(), "known": known},
        "validation": held_out,
        "machine": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
        },
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def read_description(folder: Path) -> dict[str, Any]:
    try:
        description: dict[str, Any] = json.loads((folder / "run.json").read_text("utf-8"))
        return description
    except FileNotFoundError:
        raise CheckpointError(f"{folder}: no run here (there is no run.json).") from None
    except (OSError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{folder / 'run.json'}: cannot be read ({error}).") from None


def digest(x: Tensor) -> str:
    """SHA-256 of values, shape and type."""
    array = np.ascontiguousarray(x.numpy())
    sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    sha.update(array.reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def check_memory(recipe: Recipe, labels: Labels) -> None:
    """Refuse a method whose per-entry state would not fit, before anything is made."""
    needed = catalogue.find(recipe.method).kind.entry_bytes * labels.shape[0] * labels.shape[1]
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * there:
        raise PartlyError(
            f"{recipe.method} keeps {needed / 2**30:.1f} GiB for {labels.shape[0]} x {labels.shape[1]} entries; "
            f"the limit is {MEMORY_SHARE:.0%} of the {there / 2**30:.1f} GiB of this machine. "
            "Take a method without per-entry state (partly methods), or fewer items."
        )


def _claim(folder: Path, description: dict[str, Any]) -> None:
    """Write run.json in a new folder; in a used one, make sure that it is the same run."""
    if not (folder / "run.json").exists():
        checkpoint.write_json(folder / "run.json", description)
        return
    here, there = (_flat(part) for part in (description, read_description(folder)))
    differ = [key for key in here | there if here.get(key) != there.get(key)]
    if differ:
        lines = "".join(f"\n  {key}: {there.get(key)!r} there, {here.get(key)!r} now" for key in differ)
        raise CheckpointError(
            f"{folder} holds another run; these differ:{lines}\n"
            "Use another folder, or the same data and settings to go on."
        )


def _flat(description: dict[str, Any]) -> dict[str, Any]:
    """What must be equal for a run to go on: all but the machine and the time."""
    flat = {f"recipe.{key}": value for key, value in description["recipe"].items()}
    flat |= {f"data.{key}": description["data"][key] for key in ("shape", "sha256", "labels_sha256")}
    flat |= {f"validation.{key}": value for key, value in (description["validation"] or {}).items()}
    return flat | {"labels": description["labels"], "format": description["format"]}
