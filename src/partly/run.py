"""One training run: a recipe, the data it is for, and the folder that says exactly what was run on what.

This is the engine: it trains and predicts. `Classifier`, the loop of questions and comparisons call it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit
from torch import Tensor

import partly
from partly import auto, checkpoint, files, methods, metrics, networks, training
from partly.catalogue import Info
from partly.clock import Clock
from partly.errors import CheckpointError, DataError, PartlyError, SettingError, listing
from partly.items import Absent, Items
from partly.labels import Labels
from partly.method import Method, Task
from partly.networks import Network, backbones
from partly.pool import Pool
from partly.training import BELIEFS, IDS, Progress, Validation, Watch

MEMORY_SHARE = 0.6  # of RAM that what is kept for entries may take
OPEN = ("epochs", "batch_size", "lr", "weight_decay", "backbone", "settings", "head_settings", "backbone_settings")
NUMBERS: dict[str, tuple[Any, float, str]] = {  # what the numbers of a recipe may be: type, least, in words
    "epochs": (Integral, 1, "a whole number, 1 or more"),
    "batch_size": (Integral, 1, "a whole number, 1 or more"),
    "lr": (Real, sys.float_info.min, "a number above 0"),
    "weight_decay": (Real, 0, "a number, 0 or more"),
    "seed": (Integral, -math.inf, "a whole number"),
}


@dataclass(frozen=True)
class Recipe:
    """All that decides the bits of a run, beside the data: nothing is left to be chosen later, and all settings are
    spelled out."""

    method: str
    head: str = "mlp"
    epochs: int = 10
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.3
    optimizer: str = "adamw"
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    head_settings: dict[str, Any] = field(default_factory=dict)
    backbone: str | None = None
    backbone_settings: dict[str, Any] = field(default_factory=dict)

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
        parts: dict[str, Info] = {"settings": methods.find(self.method), "head_settings": networks.find_head(self.head)}
        if self.backbone is not None:
            parts["backbone_settings"] = backbones.find(self.backbone)
        for name in ("settings", "head_settings", "backbone_settings"):
            given = getattr(self, name)
            if not isinstance(given, dict):
                raise SettingError(f"{name} = {given!r} must be a dictionary, name -> value.")
            if name in parts:
                spelled = parts[name].complete(given)
                plain = {key: list(value) if isinstance(value, tuple) else value for key, value in spelled.items()}
                object.__setattr__(self, name, plain)  # as it comes back from JSON
            elif given:
                raise SettingError(f"{name} = {given!r}, but there is no backbone to set.")

    def build(self, items: Items, labels: int, observed: Labels | None = None) -> Method:
        """The method, untrained, for such items; `observed` is what it is to be trained on, None to predict only."""
        return methods.find(self.method).build(self.task(items, labels, observed), self.settings)

    def task(self, items: Items, labels: int, observed: Labels | None = None) -> Task:
        """What the method builds itself from."""
        return Task(
            items,
            labels,
            self.head,
            self.optimizer,
            self.lr,
            self.weight_decay,
            seed=self.seed,
            observed=observed,
            head_settings=self.head_settings,
            backbone=self.backbone,
            backbone_settings=self.backbone_settings,
        )


def complete(asked: Mapping[str, Any], items: Items, labels: Labels) -> tuple[Recipe, str]:
    """A recipe from what a caller asked for, and why it is that method. What may be left open is None."""
    asked = {name: value for name, value in asked.items() if value is not None or name not in OPEN}
    method, reason = auto.choose(labels) if asked["method"] == "auto" else (asked["method"], "asked for")
    if items.kind == "features" and "backbone" in asked:
        raise SettingError(f"backbone = {asked['backbone']!r}: features need none. Leave it out.")
    recipe = Recipe(**{"backbone": backbones.DEFAULT[items.kind], **asked, "method": method})
    derived = default_recipe(items, labels.shape[1], recipe.optimizer, asked.get("batch_size"))
    return replace(recipe, **{name: value for name, value in derived.items() if name not in asked}), reason


def default_recipe(
    items: Items, labels: int, optimizer: str = "adamw", batch_size: int | None = None
) -> dict[str, Any]:
    """What a recipe leaves open, for these items: enough steps for few items, more epochs for many labels (most of
    which are rare), and a rate that suits the optimiser.

    The numbers were chosen on validation parts of the features of VOC 2012, COCO, debtags, scene and yeast, and of the
    scenes; that for SGD on VOC 2012 alone.
    """
    given = items.kind == "features"  # only a head is learned; of pictures, a convolutional backbone from nothing
    batch_size = batch_size or 64
    steps = -(-len(items) // batch_size)
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
    method: Method  # it only predicts
    progress: Progress
    description: dict[str, Any]  # what was run on what
    folder: Path | None = None  # where it lies, if anywhere
    in_memory: npt.NDArray[np.floating[Any]] | None = None  # its beliefs, where there is no folder

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.description["labels"])

    @cached_property
    def beliefs(self) -> npt.NDArray[np.floating[Any]] | None:
        """What the method believes of the training entries, [N, L], when its last epoch was over; from a folder they
        are mapped, and checked when first asked for. None where it believes nothing."""
        return self.in_memory if self.folder is None else read_beliefs(self.folder)

    def check_items(self, items: Items) -> None:
        """Refuse items that are not such as the model was trained on."""
        here, there = ((one.kind, one.shape) for one in (items, self.method.task.items))
        if here != there:
            raise DataError(
                f"The model was trained on {there[0]} of {list(there[1])}; these are {here[0]} of {list(here[1])}."
            )
        names, others = self.method.task.items.names, items.names
        if names is not None and others is not None and names != others:
            pairs = enumerate(zip(names, others, strict=True))
            differ = [f"column {j}: {a!r} in training, {b!r} here" for j, (a, b) in pairs if a != b]
            raise DataError(
                "The features are not those of training, or in another order"
                + listing(differ, len(differ))
                + "\nGive them under the same names, in the same order."
            )

    def logits(self, items: Items, known: Labels | None = None) -> npt.NDArray[np.float32]:
        """[N, L]; `known`: what is known of these items, for a head that makes use of it."""
        self.check_items(items)
        self._check_known(known)
        return training.logits(self.method, items, known=known)

    def predict(self, items: Items, known: Labels | None = None) -> npt.NDArray[np.float32]:
        """Probabilities of yes [N, L]."""
        logits = self.logits(items, known)
        probabilities: npt.NDArray[np.float32] = expit(logits, out=logits)
        return probabilities

    def _check_known(self, known: Labels | None) -> None:
        parts = (part for part in self.method.modules() if isinstance(part, Network))
        if known is not None and not any(network.takes_labels for network in parts):
            raise SettingError(
                f"known: the head {self.recipe.head!r} makes no use of known labels. "
                "Train with head='c-tran', or leave `known` out."
            )


def fit(
    recipe: Recipe,
    items: Items,
    labels: Labels,
    *,
    validation: Validation | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    save_seconds: float = training.SAVE_SECONDS,
    watch: Watch | None = None,
    start: Mapping[str, Tensor] | None = None,
    keep_entries: bool = False,
) -> Fitted:
    """Train by the recipe, or go on where the folder says that it stopped.

    `start`: what `state_of` gives of another run of the same method, to begin from instead of fresh weights and
    beliefs; `keep_entries`: so that this one can be such a start.
    """
    check_memory(recipe, items, labels, validation, copies=(folder is None) + (start is not None))
    if validation is not None:
        validation.items.statistics  # noqa: B018, refuses what is not finite, in the pass that makes their digest
    # Before the folder is claimed: a recipe may be refused here.
    method = recipe.build(items, labels.shape[1], labels).to(device)
    description = describe(recipe, items, labels, validation)
    if start is not None:
        method.load_state(start)
        description["start"] = {name: digest(start[name]) for name in start}
        del start
    with files.locked(folder) if folder else nullcontext():
        if folder:
            claim(folder, description)
        pool = Pool(items, labels, recipe.batch_size, device)
        progress = training.train(
            method,
            pool,
            Clock(recipe.seed, recipe.epochs, pool.steps),
            validation=validation,
            folder=folder,
            save_seconds=save_seconds,
            watch=watch,
            keep_entries=keep_entries,
        )
        if folder:
            files.write_json(folder / "history.json", progress.history)
    beliefs = _beliefs(method) if folder is None else None
    method.finish()
    return Fitted(recipe, method, progress, description, folder, beliefs)


def _beliefs(method: Method) -> npt.NDArray[np.floating[Any]] | None:
    whole, start = None, 0
    for part in training.believed(method):
        if whole is None:
            whole = np.empty((len(method.task.items), part.shape[1]), part.dtype)
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


def load(folder: Path) -> Fitted:
    """The finished model in a run folder."""
    description, tensors, record = _finished(folder)
    recipe, data = Recipe(**description["recipe"]), description["data"]
    count, *shape = data["shape"]
    names = None if description["features"] is None else tuple(description["features"])
    method = recipe.build(Absent(data["kind"], tuple(shape), count, names), len(description["labels"]))
    method.load_state({name: tensors[name] for name in tensors if name.startswith("method.")})
    method.finish()
    return Fitted(recipe, method, Progress(**record["progress"]), description, folder)


def state_of(folder: Path) -> Mapping[str, Tensor]:
    """Weights, and what was kept for the training entries, of a run that was finished with `keep_entries`; each is read
    when it is asked for."""
    return _finished(folder)[1]


def read_beliefs(folder: Path) -> npt.NDArray[np.floating[Any]] | None:
    """What the method of a finished run believes of its training entries, [N, L], mapped from its file; None where it
    believes nothing."""
    said, path = _finished(folder)[2]["beliefs"], folder / BELIEFS
    if said is None:
        return None
    if not path.is_file() or files.sha256_of(path) != said["sha256"]:
        raise CheckpointError(f"{path}: missing or damaged (its checksum does not match). Restore it from a copy.")
    beliefs: npt.NDArray[np.floating[Any]] = np.load(path, mmap_mode="r", allow_pickle=False)
    return beliefs


def read_ids(folder: Path) -> tuple[str, ...]:
    """Of the training items, whose beliefs are in the folder; their positions where they had none."""
    said = _finished(folder)[2]["beliefs"]
    if said["ids"]:
        return tuple(files.read_sealed(folder / IDS)["ids"])
    return tuple(map(str, range(said["shape"][0])))


def _finished(folder: Path) -> tuple[dict[str, Any], Mapping[str, Tensor], dict[str, Any]]:
    """Description, tensors and record of a finished run."""
    description = read_description(folder)
    found = checkpoint.load(folder)
    if found is None or not found[1]["progress"]["finished"]:
        damage = "".join(f"\n  {problem}" for problem in (found[2] if found else ()))
        raise CheckpointError(f"{folder}: training has not finished. Start the same command again to go on.{damage}")
    if found[2]:
        warnings.warn(f"{folder}: took an older copy of the model: {'; '.join(found[2])}", stacklevel=3)
    return description, found[0], found[1]


def save(fitted: Fitted, folder: Path) -> None:
    """Write a finished model into a folder of its own, in the form that `load` reads: the model, and nothing that was
    there to train it, nor what it believes of the training entries."""
    with files.locked(folder):
        if (folder / "run.json").exists() or checkpoint.load(folder) is not None:
            raise CheckpointError(f"{folder}: there is a run in this folder already. Choose another one.")
        files.write_sealed(folder / "run.json", fitted.description)
        training.save(folder, fitted.method, Clock(fitted.recipe.seed, fitted.recipe.epochs), fitted.progress)


def publish(fitted: Fitted, folder: Path) -> None:
    """Make this the model of a folder that is held and claimed already, in the place of the one before it."""
    said, beliefs = None, fitted.beliefs
    if beliefs is not None and fitted.folder is not None:
        ids = read_ids(fitted.folder) if (fitted.folder / IDS).exists() else None
        said = training.save_beliefs(folder, beliefs.shape, beliefs.dtype, [beliefs], ids)
    training.save(folder, fitted.method, Clock(fitted.recipe.seed), fitted.progress, beliefs=said)


# ---------------------------------------------------------------- what was run on what


def describe(recipe: Recipe, items: Items, labels: Labels, validation: Validation | None = None) -> dict[str, Any]:
    """What is run on what. `_flat` of it decides whether a folder may go on."""
    known = {k: v for k, v in labels.summary().items() if not isinstance(v, list)}
    held_out = None
    if validation is not None:
        held_out = {"sha256": validation.items.digest(), "labels_sha256": validation.labels.digest()}
    return {
        "format": checkpoint.FORMAT,
        "partly": partly.__version__,
        "recipe": asdict(recipe),
        "labels": list(labels.names),
        "features": None if items.names is None else list(items.names),
        "data": {
            "kind": items.kind,
            "shape": [len(items), *items.shape],
            "sha256": items.digest(),
            "labels_sha256": labels.digest(),
            "known": known,
        },
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
    description = files.read_sealed(path)
    if description.get("format") != checkpoint.FORMAT:
        raise CheckpointError(
            f"{folder}: a run of format {description.get('format')}; this version reads format {checkpoint.FORMAT}. "
            "Train it again, or use the version that wrote it."
        )
    return description


def digest(tensor: Tensor) -> str:
    """SHA-256 of values, shape and type."""
    array = tensor.cpu().contiguous().numpy()
    sha = hashlib.sha256(f"{array.dtype.str}{array.shape}".encode())
    sha.update(array.reshape(-1).view(np.uint8).data)
    return sha.hexdigest()


def claim(folder: Path, description: dict[str, Any]) -> None:
    """Write run.json in a new folder; in a used one, make sure that it is the same run."""
    if not (folder / "run.json").exists():
        files.write_sealed(folder / "run.json", description)
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
    flat |= {f"data.{key}": description["data"][key] for key in ("kind", "shape", "sha256", "labels_sha256")}
    flat |= {f"validation.{key}": value for key, value in (description["validation"] or {}).items()}
    flat |= {f"asks.{key}": value for key, value in description.get("asks", {}).items()}
    return flat | {key: description.get(key) for key in ("labels", "format", "start")}


# ---------------------------------------------------------------- memory


def entry_memory(
    recipe: Recipe, items: Items, labels: Labels, validation: Validation | None = None, copies: int = 0
) -> int:
    """Bytes that training needs at its peak for entries: what the method keeps, what it needs to work on them, what
    scoring the validation part takes, and copies of the beliefs: one where they stay in memory, one where a start is
    read. All are added up, since what is freed is not always given back."""
    task = recipe.task(items, labels.shape[1], labels)
    kept, working = methods.find(recipe.method).memory(task, recipe.settings)
    scored = 0 if validation is None else metrics.memory(validation.labels.shape)
    believed = methods.find(recipe.method).kind.belief_bytes * math.prod(labels.shape)
    return kept + working + scored + copies * believed


def check_memory(
    recipe: Recipe, items: Items, labels: Labels, validation: Validation | None = None, copies: int = 0
) -> None:
    """Refuse a run whose entries would not fit, before anything is made."""
    needed = entry_memory(recipe, items, labels, validation, copies)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > MEMORY_SHARE * there:
        raise PartlyError(
            f"{recipe.method} keeps {needed / 2**30:.1f} GiB for {labels.shape[0]} x {labels.shape[1]} entries; "
            f"the limit is {MEMORY_SHARE:.0%} of the {there / 2**30:.1f} GiB of this machine. "
            "Take settings or a method with less per-entry state (partly methods), or fewer items."
        )
