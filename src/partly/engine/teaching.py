"""Teachers of a run: choose them, fit their weights, and save them with the model.

Like calibration, a teacher does not change the trained weights: it is weighed on out-of-fold logits afterwards, and
saved in a separate file of the run folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from partly import atomic_io, methods, teachers
from partly.calibration.maps import sigmoid
from partly.config import TrainConfig
from partly.engine import checkpoint
from partly.engine.plan import Plan
from partly.errors import CheckpointError, SettingError
from partly.items import Items, PrecomputedFeatures, features
from partly.labels import Labels
from partly.labels.weights import Weights
from partly.networks.lazy_features import LazyFeatures
from partly.teachers import combination
from partly.teachers.combination import Combination
from partly.teachers.contract import Teacher, items_per_block, vocabulary
from partly.teachers.label_names import LabelNames, is_installed
from partly.teachers.run import Run, is_run
from partly.teachers.score_matrix import ScoreMatrix, open_scores
from partly.teachers.scores import Scores
from partly.teachers.wording import are_words, codes, describe_codes

FILE = "teacher.json"
OUT_OF_FOLD = "out-of-fold-with-teacher"
Blocks = list[npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Teaching:
    """Teachers and their combination with a model; None for a teacher that cannot be restored."""

    teachers: tuple[Teacher | None, ...]
    identities: tuple[dict[str, Any], ...]
    combination: Combination

    def open(
        self, items: Items, names: Sequence[str], ids: Sequence[str] | None = None
    ) -> Callable[[Items, slice], Blocks]:
        """Return a function of a block of these items and its rows, which returns the scores of each teacher.

        Scores of a teacher without weight are NaN.
        """
        used = {k: self._teacher(k) for k in self.combination.used}
        labels = names if ids is None else vocabulary(names, ids)
        # A score file or an array is read by position; other teachers score the items of a block.
        readers = {k: teacher.reader(items, labels) for k, teacher in used.items() if isinstance(teacher, Scores)}

        def read(part: Items, rows: slice) -> Blocks:
            block_labels = names if ids is None else vocabulary(names, ids[rows])
            return [
                readers[k](rows)
                if k in readers
                else used[k].scores(part, block_labels)
                if k in used
                else np.full((len(part), len(names)), np.nan, np.float32)
                for k in range(len(self.teachers))
            ]

        return read

    def _teacher(self, k: int) -> Teacher:
        teacher = self.teachers[k]
        if teacher is None:
            raise SettingError(
                f"The model was trained with the teacher {self.combination.names[k]!r}, which is not at hand for these "
                "items. Give its scores for them: predict_proba(X, teacher=...), --teacher FILE; or leave it out: "
                "teacher='none', --teacher none."
            )
        return teacher

    def list_teachers_for_refit(self) -> list[Teacher] | None:
        """Return the teachers for another fit; None if they are the default, or if none can be restored."""
        at_hand = [teacher for teacher in self.teachers if teacher is not None]
        default = LabelNames().identity()
        return at_hand if any(t.identity() | {"hierarchy": None} != default for t in at_hand) else None

    def with_teachers(self, given: Any) -> Teaching:
        """Replace the teachers, in the same order, for example by scores of other items."""
        replacements = as_teachers(given)
        if len(replacements) != len(self.teachers):
            raise SettingError(
                f"teacher: {len(replacements)} given, and the model was trained with {len(self.teachers)}: "
                f"{', '.join(self.combination.names)}. Give one for each, in this order."
            )
        return replace(self, teachers=replacements)


def as_teachers(source: Any) -> tuple[Teacher, ...]:
    """Return teachers as `teachers.as_teachers` does, and also for run folders and for "a,b"."""
    if isinstance(source, str) and "," in source and not Path(source).exists():
        source = [path.strip() for path in source.split(",")]
    is_list = isinstance(source, list | tuple) and source and not isinstance(source[0], list | tuple)
    sources = source if is_list else [source]
    if any(isinstance(each, str | Path) and is_run(Path(each)) for each in sources):
        source = [Run(each) if isinstance(each, str | Path) and is_run(Path(each)) else each for each in sources]
    return teachers.as_teachers(source)


def choose(config: TrainConfig, items: Items, labels: Labels) -> tuple[Teacher, ...]:
    """Return the teachers of a run. The default is label names, if they are words and the features allow it."""
    if config.teacher is not None:
        return tuple(_with_hierarchy(teacher, config) for teacher in as_teachers(config.teacher))
    origin = items.origin
    names = LabelNames(hierarchy=config.hierarchy)
    if origin is None or not are_words(labels.names) or not names.reads(origin) or not is_installed(origin.backbone):
        return ()
    return (names,)


def _with_hierarchy(teacher: Teacher, config: TrainConfig) -> Teacher:
    if isinstance(teacher, LabelNames) and teacher.hierarchy is None and config.hierarchy is not None:
        return LabelNames(
            teacher.descriptions,
            teacher.encoder,
            prompts=teacher.prompts,
            hierarchy=config.hierarchy,
            device=teacher.device,
        )
    return teacher


@dataclass(frozen=True, eq=False)
class TeacherPrior:
    """Scores of teachers for training items, the source of initial beliefs (a `partly.method.prior`)."""

    scores: Sequence[ScoreMatrix]
    labels: Labels
    weights: Weights | None
    seed: int

    def __call__(self, out_of_fold: torch.Tensor | None) -> torch.Tensor:
        """Return logits [N, L] by slopes that were fitted on the known entries of other items."""
        logits = np.zeros(self.labels.shape, np.float32) if out_of_fold is None else out_of_fold.cpu().numpy()
        return torch.from_numpy(combination.fit(logits, self.scores, self.labels, self.weights, self.seed).out_of_fold)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> TeacherPrior:
        """Return the prior of some of the items."""
        weights = None if self.weights is None else self.weights[rows]
        return TeacherPrior([scores[rows] for scores in self.scores], self.labels[rows], weights, self.seed)


def with_prior(plan: Plan) -> Plan:
    """Add the teachers' scores to a plan, if a teacher is requested and the method has beliefs.

    For other methods, scores that do not fit the data are refused here, before training."""
    if plan.config.teacher is None:
        return plan
    chosen = choose(plan.config, plan.items, plan.labels)
    scores = [open_scores(teacher, plan.items, plan.labels) for teacher in chosen]
    if not chosen or not any(state.belief for state in methods.find(plan.config.method).kind.entry_state):
        return plan
    return replace(plan, prior=TeacherPrior(scores, plan.labels, plan.weights, plan.config.seed))


def name_rows(config: TrainConfig, ids: Sequence[str]) -> TrainConfig:
    """Return the configuration with ids for scores by position, so that the items can be split."""
    if config.teacher is None:
        return config
    unnamed = as_teachers(config.teacher)
    named = [teacher.with_ids(ids) if isinstance(teacher, Scores) else teacher for teacher in unnamed]
    unchanged = all(new is old for new, old in zip(named, unnamed, strict=True))
    return config if unchanged else replace(config, teacher=named)


def describe_circular_runs(teaching: Teaching | None, items: Items) -> list[str]:
    """State which runs that teach were trained on the same items."""
    runs = [] if teaching is None else [teacher for teacher in teaching.teachers if isinstance(teacher, Run)]
    return [
        f"{run.path} was trained on these items. If it learned these labels, its weight is too high: use a run "
        "of other items or labels."
        for run in runs
        if run.model.description["data"]["sha256"] == items.digest()
    ]


def describe_silent_names(config: TrainConfig, items: Items, names: Sequence[str]) -> str:
    """State which label names are codes, if label names are requested or would be the default; otherwise ''."""
    origin = items.origin
    if config.teacher is None:
        readers = [LabelNames()] if origin is not None and LabelNames().reads(origin) else []
    else:
        readers = [teacher for teacher in as_teachers(config.teacher) if isinstance(teacher, LabelNames)]
    silent = codes(names, readers[0].descriptions) if readers else []
    return describe_codes(silent, len(names)) if silent else ""


def fit(
    plan: Plan, given: Sequence[Teacher], out_of_fold: npt.NDArray[Any] | None
) -> tuple[Teaching, npt.NDArray[np.float32]]:
    """Fit the weights of the teachers, and return the combined out-of-fold logits.

    out_of_fold: logits of the model; None without any known entry."""
    if out_of_fold is None:
        out_of_fold = _zeros(plan.labels.shape)
    prior_scores = plan.prior.scores if isinstance(plan.prior, TeacherPrior) else None
    scores = prior_scores or [open_scores(teacher, plan.items, plan.labels) for teacher in given]
    names = [teacher.describe() for teacher in given]
    fitted = combination.fit(out_of_fold, scores, plan.labels, plan.weights, plan.config.seed, names)
    return Teaching(tuple(given), tuple(t.identity() for t in given), fitted.combination), fitted.out_of_fold


def zero_shot(config: TrainConfig, items: Items, labels: Labels) -> npt.NDArray[np.float32] | None:
    """Return probabilities [N, L] by the teachers that need no training; None without a teacher for these items."""
    chosen = choose(config, items, labels)
    if not chosen or not len(items):
        return None
    scores = [teacher.scores(items, labels) for teacher in chosen]
    fitted = combination.fit(np.zeros(labels.shape, np.float32), scores, vocabulary(labels.names, labels.ids))
    return sigmoid(fitted.combination.teachers_only(scores))


def taught_logits(config: TrainConfig, items: Items, labels: Labels) -> npt.NDArray[np.float32] | None:
    """Return out-of-fold logits [N, L] by teachers alone, calibrated on the known entries of other items.

    None without a teacher for these items, or if the known entries are against it.
    """
    chosen = choose(config, items, labels)
    if not chosen or not len(items):
        return None
    scores = [open_scores(teacher, items, labels) for teacher in chosen]
    fitted = combination.fit(_zeros(labels.shape), scores, labels, seed=config.seed)
    return fitted.out_of_fold if fitted.combination.used else None


def _zeros(shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """Return logits of a model that knows nothing, without memory."""
    return np.broadcast_to(np.float32(0), shape)


def combine(
    teaching: Teaching,
    items: Items,
    names: Sequence[str],
    ids: Sequence[str] | None,
    logits: Any,
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield combined logits of items.

    logits: a function of (items, rows) that yields the model's logits for a block of items; None without a model."""
    read, size = teaching.open(items, names, ids), items_per_block(len(names))
    for start in range(0, len(items), size):
        rows = slice(start, min(start + size, len(items)))
        part = items[rows]
        if isinstance(part, LazyFeatures):  # compute features once for the model and the teachers
            part = PrecomputedFeatures(features(part.take(slice(None)).numpy()), part.origin, part.source)
        scores = read(part, rows)
        if logits is None:
            yield teaching.combination.teachers_only(scores)
        else:
            yield teaching.combination(np.concatenate(list(logits(part, rows))), scores)


def combiner(
    teaching: Teaching, items: Items, names: Sequence[str], ids: Sequence[str] | None
) -> Callable[[npt.NDArray[np.float32], slice], npt.NDArray[np.float32]]:
    """Return a function that combines logits of given rows with the teachers' scores."""
    read = teaching.open(items, names, ids)

    def combine_rows(logits: npt.NDArray[np.float32], rows: slice) -> npt.NDArray[np.float32]:
        return teaching.combination(logits, read(items[rows], rows))

    return combine_rows


def write(folder: Path, teaching: Teaching | None, out_of_fold: npt.NDArray[Any] | None = None) -> None:
    """Write the teaching of a run folder, or remove it."""
    array = folder / f"{OUT_OF_FOLD}.npy"
    if teaching is None:
        for path in (folder / FILE, array, array.with_suffix(".json")):
            atomic_io.remove_file(path)
        return
    if out_of_fold is not None:
        checkpoint.save_out_of_fold(folder, out_of_fold.shape, [out_of_fold], OUT_OF_FOLD)
    atomic_io.write_checksummed(
        folder / FILE, {"teachers": list(teaching.identities), "combination": teaching.combination.to_json()}
    )


def read(folder: Path, labels: int) -> Teaching | None:
    """Read the teaching of a run folder; None if it has none."""
    if not (folder / FILE).exists():
        return None
    content = atomic_io.read_checksummed(folder / FILE)
    try:
        combination_read = Combination.from_json(content["combination"])
        identities = tuple(dict(identity) for identity in content["teachers"])
        if len(combination_read.bias) != labels or len(identities) != len(combination_read.standardizations):
            raise ValueError("it is for other labels or teachers")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / FILE}: cannot be read ({error}). Restore it from a copy.") from None
    used = [
        teachers.from_identity(identity) if k in combination_read.used else None
        for k, identity in enumerate(identities)
    ]
    return Teaching(tuple(used), identities, combination_read)
