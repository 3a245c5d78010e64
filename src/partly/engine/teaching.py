"""Teachers of a run: which ones, how much they count, and how they are saved with the model.

Like calibration, a teacher changes nothing about the trained weights: it is weighed on out-of-fold logits afterwards,
and kept in a file of its own in the run folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import atomic_io, teachers
from partly.calibration.maps import sigmoid
from partly.config import TrainConfig
from partly.engine import checkpoint
from partly.engine.plan import Plan
from partly.errors import CheckpointError, SettingError
from partly.items import Items, PrecomputedFeatures, features
from partly.labels import Labels
from partly.networks.lazy_features import LazyFeatures
from partly.teachers import combination
from partly.teachers.combination import Combination
from partly.teachers.contract import Teacher, vocabulary
from partly.teachers.label_names import LabelNames, is_installed
from partly.teachers.run import Run, is_run
from partly.teachers.scores import Scores
from partly.teachers.wording import are_words

FILE = "teacher.json"
OUT_OF_FOLD = "out-of-fold-with-teacher"
ITEMS_AT_A_TIME = 4096
Blocks = list[npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Teaching:
    """Teachers and how they are combined with a model; None in place of a teacher that is not at hand any more."""

    teachers: tuple[Teacher | None, ...]
    identities: tuple[dict[str, Any], ...]
    combination: Combination

    def scores(self, items: Items, names: Sequence[str], ids: Sequence[str] | None = None) -> Blocks:
        """Return the scores of each teacher, [N, L]; NaN for one that does not count."""
        labels = names if ids is None else vocabulary(names, ids)
        nothing_said = np.full((len(items), len(names)), np.nan, np.float32)
        return [
            self._teacher(k).scores(items, labels) if k in self.combination.used else nothing_said
            for k in range(len(self.teachers))
        ]

    def _teacher(self, k: int) -> Teacher:
        teacher = self.teachers[k]
        if teacher is None:
            raise SettingError(
                f"The model was trained with the teacher {self.combination.names[k]!r}, which is not at hand for these "
                "items. Give its scores for them: predict_proba(X, teacher=...), --teacher FILE; or leave it out: "
                "teacher='none', --teacher none."
            )
        return teacher

    def by_position(self) -> bool:
        """Tell whether a teacher holds scores of certain items, so that these cannot be scored in parts."""
        return any(isinstance(self.teachers[k], Scores) for k in self.combination.used)

    def with_teachers(self, given: Any) -> Teaching:
        """Return the same with other teachers in the same places, such as scores of other items."""
        found = as_teachers(given)
        if len(found) != len(self.teachers):
            raise SettingError(
                f"teacher: {len(found)} given, and the model was trained with {len(self.teachers)}: "
                f"{', '.join(self.combination.names)}. Give one for each, in this order."
            )
        return replace(self, teachers=found)


def as_teachers(given: Any) -> tuple[Teacher, ...]:
    """Return the teachers that a caller means: as `teachers.as_teachers`, also run folders and "a,b" for several."""
    if isinstance(given, str) and "," in given and not Path(given).exists():
        given = [part.strip() for part in given.split(",")]
    parts = given if isinstance(given, list | tuple) and given and not isinstance(given[0], list | tuple) else [given]
    if any(isinstance(part, str | Path) and is_run(Path(part)) for part in parts):
        given = [Run(part) if isinstance(part, str | Path) and is_run(Path(part)) else part for part in parts]
    return teachers.as_teachers(given)


def choose(config: TrainConfig, items: Items, labels: Labels) -> tuple[Teacher, ...]:
    """Return the teachers of a run. None means label names, where features are there to compare them with and the
    names are words."""
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


def fit(
    plan: Plan, given: Sequence[Teacher], out_of_fold: npt.NDArray[Any] | None
) -> tuple[Teaching, npt.NDArray[np.float32]]:
    """Fit how much teachers count, and return the combined out-of-fold logits. Without any known entry the model's
    logits say nothing, and None stands for them."""
    if out_of_fold is None:
        out_of_fold = np.zeros(plan.labels.shape, np.float32)
    scores = [teacher.scores(plan.items, plan.labels) for teacher in given]
    names = [teacher.describe() for teacher in given]
    found = combination.fit(out_of_fold, scores, plan.labels, plan.weights, plan.config.seed, names)
    return Teaching(tuple(given), tuple(t.identity() for t in given), found.combination), found.out_of_fold


def zero_shot(config: TrainConfig, items: Items, labels: Labels) -> npt.NDArray[np.float32] | None:
    """Return probabilities [N, L] by the teachers that need no training; None where there are none for these items."""
    given = choose(config, items, labels)
    if not given or not len(items):
        return None
    scores = [teacher.scores(items, labels) for teacher in given]
    found = combination.fit(np.zeros(labels.shape, np.float32), scores, vocabulary(labels.names, labels.ids))
    return sigmoid(found.combination.teachers_only(scores))


def combine(
    teaching: Teaching,
    items: Items,
    names: Sequence[str],
    ids: Sequence[str] | None,
    logits: Any,
) -> Iterator[npt.NDArray[np.float32]]:
    """Yield combined logits of items; logits(items, rows) yields those of the model for a part of them, None stands for
    no model."""
    whole = teaching.scores(items, names, ids) if teaching.by_position() else None
    for start in range(0, len(items), ITEMS_AT_A_TIME):
        rows = slice(start, min(start + ITEMS_AT_A_TIME, len(items)))
        part = items[rows]
        if isinstance(part, LazyFeatures):  # computed once, for the model and for the teachers
            part = PrecomputedFeatures(features(part.take(slice(None)).numpy()), part.origin, part.source)
        scores = teaching.scores(part, names) if whole is None else [own[rows] for own in whole]
        if logits is None:
            yield teaching.combination.teachers_only(scores)
        else:
            yield teaching.combination(np.concatenate(list(logits(part, rows))), scores)


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
    """Read the teaching of a run folder; None where there is none."""
    if not (folder / FILE).exists():
        return None
    said = atomic_io.read_checksummed(folder / FILE)
    try:
        found = Combination.from_json(said["combination"])
        identities = tuple(dict(identity) for identity in said["teachers"])
        if len(found.bias) != labels or len(identities) != len(found.standardizations):
            raise ValueError("it is for other labels or teachers")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{folder / FILE}: cannot be read ({error}). Restore it from a copy.") from None
    used = [teachers.from_identity(identity) if k in found.used else None for k, identity in enumerate(identities)]
    return Teaching(tuple(used), identities, found)
