"""The configuration of a training run: every option once, with its type, default and help text.

`Classifier` takes its parameters from `TrainConfig`, `partly train` its options, presets and experiment files their
entries, and run.json its `recipe`. To add a training option, add a field here (docs/extend.md shows how). This module
needs neither numpy nor torch, so that `partly train --help` answers at once.
"""

# ruff: noqa: RUF009 (`option` returns a dataclass field)

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Self, get_args

from partly.errors import SettingError, within

MODEL, TRAINING = "Model", "Training"  # headings in the help of the command line
Precision = Literal["auto", "float32", "bfloat16"]
Start = Literal["solved", "random"]
Part = Any  # a torch module, or a function that makes one
HierarchyLike = Any  # a `Hierarchy`, or a mapping from child to parent
MAX_LR = 100.0  # a larger step ends in NaN
NUMBERS: dict[str, tuple[Any, float, str]] = {  # type, smallest value, description
    "epochs": (Integral, 1, "a whole number, 1 or more"),
    "batch_size": (Integral, 1, "a whole number, 1 or more"),
    "lr": (Real, sys.float_info.min, "a number above 0"),
    "weight_decay": (Real, 0, "a number, 0 or more"),
    "seed": (Integral, -math.inf, "a whole number"),
    "accumulate": (Integral, 1, "a whole number, 1 or more"),
}
SETTINGS = ("settings", "head_settings", "backbone_settings", "schedule_settings")


def option(default: Any, help: str, more: str = "", *, stored: bool = True, panel: str = TRAINING, **cli: Any) -> Any:
    """Declare a field.

    help: one line for the command line and the docstring; more: further sentences of the docstring. stored: whether
    the field is part of what decides a run, and so of run.json. cli: metadata for `cli.dataclass_options`.
    """
    metadata = {"help": help, "more": more, "stored": stored, "panel": panel, **cli}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a training run besides the data. None leaves a value open: `engine.resolve` fills it."""

    method: str = option(
        "auto",
        "Training method (see `partly methods`), or auto for a weighted portfolio.",
        'On features, "auto" blends several models by their held-out log loss. Otherwise it is the plain method that '
        "fits what is known.",
        complete="methods",
        panel=MODEL,
    )
    head: str | Part = option(
        "auto",
        "Head on the features: linear, mlp, kernel, ...; auto selects one for the method.",
        "It may be your own torch module, or a function that makes one.",
        cli_type=str,
        panel=MODEL,
    )
    epochs: int | None = option(None, "Passes over the data; by default derived from the data.")
    batch_size: int | None = option(None, "Items per batch; by default derived from the data.")
    lr: float | None = option(None, "Learning rate; by default derived from the data.")
    weight_decay: float | None = option(
        None,
        "Weight decay; the penalty of a solved head, which is otherwise cross-validated.",
        "For training by steps, it is what the optimizer takes. Where a head is solved, weight_decay / 2 * |w|^2 is "
        "added to the mean loss over the items.",
    )
    optimizer: str | None = option(None, "Optimizer: adamw (the default), sgd (momentum 0.9), adam or rmsprop.")
    seed: int = option(0, "Random seed: same seed, same data, same settings, same result.")
    settings: dict[str, Any] = option({}, "Setting of the method: name=value. Repeatable.", panel=MODEL)
    device: str = option("auto", "Device: auto (a GPU if there is one), cpu, cuda, ...", stored=False)
    run_dir: str | Path | None = option(
        None,
        "Folder to save in; fitting again with the same data and parameters resumes.",
        stored=False,
        cli=False,  # `--run`
    )
    progress: bool = option(True, "Show a progress bar.", stored=False, cli=False)  # `--quiet`
    backbone: str | Part | None = option(
        None,
        "Backbone that computes features of images and texts (docs/backbones.md).",
        'A name ("efficientnet-lite0", "hf:FOLDER"), your own torch module, or a function that makes one. None takes '
        "the default for these items.",
        cli_type=str | None,
        panel=MODEL,
    )
    head_settings: dict[str, Any] = option({}, "Setting of the head, such as hidden=256. Repeatable.", panel=MODEL)
    backbone_settings: dict[str, Any] = option({}, "Setting of the backbone. Repeatable.", panel=MODEL)
    budget: float | str | None = option(
        None,
        "Time limit of the portfolio auto: minutes (default 5), 20x (the time of 20 plain fits), or inf.",
        stored=False,  # it becomes a setting of the portfolio
        cli_type=str | None,
        panel=MODEL,
    )
    folds: int | None = option(
        None,
        "Number of cross-validation folds for out-of-fold scores.",
        "Solved methods, among them auto, compute out-of-fold scores without further models.",
        stored=False,
    )
    augment: bool | dict[str, float] | None = option(
        None,
        "Augment images in files during training: crop, flip, brightness.",
        "True, False, or settings of `partly.images.augmentation.Augmentation`; None: wherever it is possible.",
        option="--augment/--no-augment",
        cli_type=bool | None,
        panel=MODEL,
    )
    recipe: str | None = option(
        None, "Preset of a paper, such as durand2019, for everything left open: `partly methods --recipes`."
    )
    schedule: str | None = option(
        None, "Schedule of the learning rate: cosine (the default), step, plateau or constant."
    )
    schedule_settings: dict[str, Any] = option({}, "Setting of the schedule. Repeatable.")
    start: Start | None = option(
        None,
        "Initial weights of iterative methods on features: solved (the plain baseline; the default) or random.",
        'With "solved" the learning rate and the number of epochs are chosen on held-out entries. A method stays at '
        "the baseline where no step improves it (docs/solved-start.md).",
        cli_type=str | None,
    )
    accumulate: int = option(1, "Batches per optimizer step.")
    average: float | None = option(
        None,
        "Decay of an exponential average of the weights, such as 0.999.",
        "The average is what is evaluated and saved.",
    )
    dtype: Precision = option(
        "auto",
        "Precision of networks in training: auto (bfloat16 on a GPU that supports it), float32 or bfloat16.",
        stored_name="precision",
        cli_type=str,
    )
    compile: bool = option(False, "Compile networks for training; needs a C++ compiler.")
    hierarchy: HierarchyLike | None = option(
        None,
        "Label hierarchy: a `Hierarchy`, or {child: parent}; several parents as a list.",
        "Implied labels are added before training, and no label is scored above its parent: in Python, in files and in "
        "an exported graph. Each parent needs a column in Y.",
        cli=False,  # `--hierarchy` names a file
    )
    calibrate: str | None = option(
        None, "Calibrate probabilities per label on out-of-fold scores: platt or isotonic.", stored=False, panel=MODEL
    )
    thresholds: str | None = option(
        None,
        "Choose a threshold per label: f1, precision:0.9, recall:0.9, or share (the expected share of yes).",
        "None: 0.5, or what the method chose. Calibration and thresholds are fitted on out-of-fold scores of known "
        "entries: those of the method, or of `folds` (5) further models (docs/thresholds.md).",
        stored=False,
        panel=MODEL,
    )
    teacher: Any = option(
        None,
        "Scores besides the labels: names, a score file, a run folder, or none (docs/teachers.md).",
        'By default "names" for images and texts whose labels have names of words. Also an array [N, L], a '
        "`partly.teachers` object, or a list of several. They are weighed against the model on held-out entries.",
        stored=False,
        cli_type=str | None,
        panel=MODEL,
    )
    encode: bool = option(
        True,
        "Encode non-numeric columns of a table and impute missing values.",
        "The encoding is fitted to the training items and saved with the model (docs/train.md). False refuses such "
        "columns by name.",
        stored=False,
        option="--encode/--no-encode",
        panel=MODEL,
    )

    def __post_init__(self) -> None:
        for name in ("method", "optimizer", "schedule"):
            if not isinstance(getattr(self, name), str) and not (getattr(self, name) is None and name in OPEN):
                raise SettingError(f"{name} = {getattr(self, name)!r} must be a name.")
        for name in SETTINGS:
            if getattr(self, name) is None:
                object.__setattr__(self, name, {})
            if not isinstance(getattr(self, name), dict):
                raise SettingError(f"{name} = {getattr(self, name)!r} must be a dictionary, name -> value.")
        for name, (kind, least, description) in NUMBERS.items():
            value = getattr(self, name)
            if value is None and name in OPEN:
                continue
            if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < math.inf:
                raise SettingError(f"{name} = {value!r} must be {description}.")
            # JSON has plain numbers only, and a NumPy 3 would seed differently from a plain 3.
            object.__setattr__(self, name, int(value) if kind is Integral else float(value))
        if self.lr is not None:
            within(0, MAX_LR, lr=self.lr)
        if self.start not in (None, *get_args(Start)):
            raise SettingError(f"start = {self.start!r} must be one of {', '.join(get_args(Start))}.")
        if self.average is not None:
            if isinstance(self.average, bool) or not isinstance(self.average, Real) or not 0 <= self.average < 1:
                raise SettingError(f"average = {self.average!r} must be a number from 0 to below 1, such as 0.999.")
            object.__setattr__(self, "average", float(self.average))
        if self.hierarchy is not None:
            from partly.labels.hierarchy import as_hierarchy

            object.__setattr__(self, "hierarchy", dict(as_hierarchy(self.hierarchy).parents))

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """Build from a mapping of parameters. Unknown keys are ignored; `precision`, the old name of `dtype`, is
        read."""
        known = {name: params[name] for name in cls.__dataclass_fields__ if name in params}
        if params.get("precision") is not None:
            known["dtype"] = params["precision"]
        return cls(**known)

    def explicit_values(self) -> dict[str, Any]:
        """Return the values of stored fields that are not left open."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(TrainConfig) if f.metadata["stored"]}
        return {name: value for name, value in values.items() if value is not None and value != {}}


@dataclass(frozen=True)
class ResolvedConfig(TrainConfig):
    """A configuration with nothing left open, as `engine.resolve` makes it. Narrows the types of what may be open."""

    head: str = "mlp"
    epochs: int = 10
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.3
    optimizer: str = "adamw"
    backbone: str | None = None
    augment: dict[str, float] | None = None
    schedule: str = "cosine"
    start: Start = "random"
    lr_factors: tuple[float, ...] = (1.0,)  # of lr: tried from a solved start
    hierarchy: dict[str, str | tuple[str, ...]] | None = None
    penalty: float | None = None  # of a solved head: weight_decay where it was given; None: cross-validated

    def __post_init__(self) -> None:
        if not isinstance(self.head, str):
            raise SettingError(f"head = {self.head!r} must be a name.")
        super().__post_init__()
        object.__setattr__(self, "lr_factors", tuple(map(float, self.lr_factors)))
        if self.penalty is not None:
            within(0, sys.float_info.max, penalty=self.penalty)
            object.__setattr__(self, "penalty", float(self.penalty))

    def to_json(self) -> dict[str, Any]:
        """Return what decides the run, as run.json stores it under `recipe`."""
        values = {key: getattr(self, name) for name, key in STORED_NAMES.items()}
        return values | {"lr_factors": list(self.lr_factors)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Build from what `to_json` returned; keys that an older version did not write keep their defaults."""
        names = {key: name for name, key in STORED_NAMES.items()}
        return cls(**{names.get(key, key): value for key, value in values.items()})


# Options that may be left open: their default is None.
OPEN = tuple(f.name for f in dataclasses.fields(TrainConfig) if f.default is None)
# Options that decide nothing about the trained weights, or do so through other fields.
UNSTORED = tuple(f.name for f in dataclasses.fields(TrainConfig) if not f.metadata["stored"])
# Field -> its key in run.json.
STORED_NAMES = {
    f.name: f.metadata.get("stored_name", f.name) for f in dataclasses.fields(TrainConfig) if f.metadata["stored"]
} | {"penalty": "penalty", "lr_factors": "lr_factors"}
