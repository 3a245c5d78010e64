"""One training run: a recipe, the data it is for, and the folder that says exactly what was run on what."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import partly
from partly import catalogue, checkpoint, training
from partly.clock import Clock
from partly.errors import CheckpointError, PartlyError, SettingError
from partly.labels import Labels
from partly.method import Method, Task
from partly.pool import Pool

MEMORY_SHARE = 0.6  # of RAM that a method's per-entry state may take
NUMBERS: dict[str, tuple[Any, float, str]] = {  # what the numbers of a recipe may be: type, least, in words
    "epochs": (Integral, 1, "a whole number, 1 or more"),
    "batch_size": (Integral, 1, "a whole number, 1 or more"),
    "lr": (Real, sys.float_info.min, "a number above 0"),
    "weight_decay": (Real, 0, "a number, 0 or more"),
    "seed": (Integral, -math.inf, "a whole number"),
}


@dataclass(frozen=True)
class Recipe:
    """All that decides the bits of a run, beside the data: nothing is left to be chosen later."""

    method: str
    head: str = "mlp"
    epochs: int = 10
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.3
    optimizer: str = "adamw"
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("method", "head", "optimizer"):
            if not isinstance(getattr(self, name), str):
                raise SettingError(f"{name} = {getattr(self, name)!r} must be a name.")
        for name, (kind, least, words) in NUMBERS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < math.inf:
                raise SettingError(f"{name} = {value!r} must be {words}.")
            # JSON knows plain numbers only, and a NumPy 3 would seed otherwise than a plain one.
            object.__setattr__(self, name, int(value) if kind is Integral else float(value))
        if not isinstance(self.settings, dict):
            raise SettingError(f"settings = {self.settings!r} must be a dictionary, name -> value.")

    def build(self, x: Tensor, items: int, labels: int, observed: Labels | None = None) -> Method:
        """The method, untrained, for items such as x; `observed` are the labels it is to be trained on."""
        entry = catalogue.find(self.method)
        rates = (self.optimizer, self.lr, self.weight_decay)
        task = Task(x, items, labels, self.head, *rates, seed=self.seed, observed=observed)
        return entry.build(task, self.settings)


def default_recipe(
    x: Tensor | npt.NDArray[Any], labels: int, optimizer: str = "adamw", batch_size: int | None = None
) -> dict[str, Any]:
    """What a recipe leaves open, for items x: enough steps for few items, more epochs for many labels (most of which
    are rare), and a rate that suits the optimiser.

    The numbers were chosen on validation parts of the features of VOC 2012, COCO, debtags, scene and yeast, and of the
    scenes; that for SGD on VOC 2012 alone.
    """
    given = x.ndim == 2  # features: only a head is learned; pictures: a convolutional backbone from nothing
    batch_size = batch_size or 64
    steps = -(-len(x) // batch_size)
    lr, weight_decay = (1e-3, 0.3) if given else (6e-3, 0.1)
    if optimizer == "sgd":
        lr, weight_decay = (0.3, 1e-4) if given else (0.1, 1e-4)
    least = min(max(10, labels // 4), 40)
    epochs = min(max(least, -(-(320 if given else 500) // steps)), 100)
    return {"epochs": epochs, "batch_size": batch_size, "lr": lr, "weight_decay": weight_decay}


@dataclass
class Fitted:
    """What a run leaves behind."""

    recipe: Recipe
    method: Method
    progress: training.Progress
    description: dict[str, Any]  # what was run on what

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.description["labels"])


def fit(
    recipe: Recipe,
    x: Tensor,
    labels: Labels,
    *,
    validation: training.Validation | None = None,
    features: Sequence[str] | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    save_seconds: float = training.SAVE_SECONDS,
    watch: training.Watch | None = None,
    start: dict[str, Tensor] | None = None,
) -> Fitted:
    """Train by the recipe, or go on where the folder says that it stopped.

    `start`: the `state_dict` of the same method to begin from, instead of fresh weights and beliefs.
    """
    check_memory(recipe, labels)
    # Before the folder is claimed: a recipe may be refused here.
    method = recipe.build(x, *labels.shape, labels).to(device)
    description = describe(recipe, x, labels, validation, features)
    if start is not None:
        method.load_state_dict(start)
        description["start"] = {name: digest(tensor.cpu()) for name, tensor in start.items()}
    with checkpoint.locked(folder) if folder else nullcontext():
        if folder:
            claim(folder, description)
        pool = Pool(x, labels, recipe.batch_size, device)
        clock = Clock(recipe.seed, recipe.epochs, pool.steps)
        progress = training.train(
            method, pool, clock, validation=validation, folder=folder, save_seconds=save_seconds, watch=watch
        )
        if folder:
            checkpoint.write_json(folder / "history.json", progress.history)
    # A model does not hold on to what it was trained on.
    method.task = replace(method.task, x=x[:1].clone(), observed=None)
    return Fitted(recipe, method, progress, description)


def load(folder: Path) -> Fitted:
    """The finished model in a run folder."""
    description = read_description(folder)
    found = checkpoint.load(folder)
    if found is None or not found[1]["progress"]["finished"]:
        damage = "".join(f"\n  {problem}" for problem in (found[2] if found else ()))
        raise CheckpointError(f"{folder}: training has not finished. Start the same command again to go on.{damage}")
    tensors, record, _ = found
    recipe = Recipe(**description["recipe"])
    shape = description["data"]["shape"]
    method = recipe.build(torch.zeros(2, *shape[1:]), shape[0], len(description["labels"]))
    method.load_state(tensors)
    method.eval()  # for good: what was loaded only predicts
    return Fitted(recipe, method, training.Progress(**record["progress"]), description)


def save(fitted: Fitted, folder: Path) -> None:
    """Write a finished model into a folder of its own, in the form that `load` reads."""
    with checkpoint.locked(folder):
        if (folder / "run.json").exists() or checkpoint.load(folder) is not None:
            raise CheckpointError(f"{folder}: there is a run in this folder already. Choose another one.")
        checkpoint.write_sealed(folder / "run.json", fitted.description)
        training.save(folder, fitted.method, Clock(fitted.recipe.seed, fitted.recipe.epochs), fitted.progress)


def describe(
    recipe: Recipe,
    x: Tensor,
    labels: Labels,
    validation: training.Validation | None,
    features: Sequence[str] | None = None,
) -> dict[str, Any]:
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
        "features": None if features is None else list(features),
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
    """The description in run.json, if it is what was written."""
    path = folder / "run.json"
    if not path.exists():
        raise CheckpointError(f"{folder}: no run here (there is no run.json).")
    return checkpoint.read_sealed(path)


def digest(x: Tensor) -> str:
    """SHA-256 of values, shape and type."""
    array = np.ascontiguousarray(x.numpy())
    sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    sha.update(array.reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def entry_memory(recipe: Recipe, labels: Labels) -> int:
    """Bytes that the method keeps for the entries of these labels, as it declares them."""
    entry = catalogue.find(recipe.method)
    return entry.kind.kept_bytes(*labels.shape, entry.defaults() | entry.checked(recipe.settings))


def check_memory(recipe: Recipe, labels: Labels) -> None:
    """Refuse a method whose per-entry state would not fit, before anything is made."""
    needed = entry_memory(recipe, labels)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * there:
        raise PartlyError(
            f"{recipe.method} keeps {needed / 2**30:.1f} GiB for {labels.shape[0]} x {labels.shape[1]} entries; "
            f"the limit is {MEMORY_SHARE:.0%} of the {there / 2**30:.1f} GiB of this machine. "
            "Take settings or a method with less per-entry state (partly methods), or fewer items."
        )


def claim(folder: Path, description: dict[str, Any]) -> None:
    """Write run.json in a new folder; in a used one, make sure that it is the same run."""
    if not (folder / "run.json").exists():
        checkpoint.write_sealed(folder / "run.json", description)
        return
    as_read = json.loads(json.dumps(description))  # tuples become lists
    here, there = (_flat(part) for part in (as_read, read_description(folder)))
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
    flat |= {f"asks.{key}": value for key, value in description.get("asks", {}).items()}
    return flat | {key: description.get(key) for key in ("labels", "format", "start")}
