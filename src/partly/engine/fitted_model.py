"""FittedModel: what a run leaves behind, how it predicts, and how it is saved and loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from partly import atomic_io
from partly.calibration import Calibration
from partly.calibration.maps import sigmoid
from partly.clock import Clock
from partly.config import ResolvedConfig
from partly.distributed.group import process_group
from partly.distributed.launched import current_rank
from partly.distributed.threads import size_of, thread_limit
from partly.engine import checkpoint, prediction, teaching, training
from partly.engine.checkpoint import IDS
from partly.engine.folder import (
    SAVED,
    overwrite_guard,
    read_beliefs,
    read_calibration,
    read_finished,
    read_ids,
    read_out_of_fold,
    write_calibration,
)
from partly.engine.memory import AllocationLimit, check_scores
from partly.engine.resolution import build_method, match_training, spell_out
from partly.engine.teaching import Teaching
from partly.engine.training import Progress
from partly.errors import CheckpointError, PartlyError, SettingError
from partly.items import (
    Absent,
    Conditioning,
    Encoding,
    Items,
    Origin,
    resize_like,
)
from partly.labels import Labels
from partly.method import Method
from partly.method.base import FIRST_STAGE
from partly.networks import Network
from partly.networks.custom_modules import MissingModule, Part, rebind
from partly.networks.lazy_features import LazyFeatures, rebuild_body, resize_like_training
from partly.teachers import NONE


@dataclass
class FittedModel:
    """A trained model: it predicts, and knows how it was trained."""

    config: ResolvedConfig
    method: Method  # it only predicts
    progress: Progress
    description: dict[str, Any]  # the content of run.json
    folder: Path | None = None
    # Without a folder: beliefs and out-of-fold logits of the training entries.
    beliefs_in_memory: npt.NDArray[np.floating[Any]] | None = None
    out_of_fold_in_memory: npt.NDArray[np.floating[Any]] | None = None
    calibration: Calibration | None = None  # from the method's logits to probabilities and thresholds
    reason: str = ""  # for the chosen method; empty where the model was loaded
    ids: Sequence[str] | None = None  # of the items to predict, where a teacher finds their scores by id
    teaching: Teaching | None = None  # teachers, and how their scores are combined with the method's logits

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.description["labels"])

    @property
    def has_out_of_fold(self) -> bool:
        """Return True if the method itself computes out-of-fold scores."""
        return self.method.provides_out_of_fold

    @property
    def thresholds(self) -> npt.NDArray[np.float32]:
        """Threshold of each label [L]: chosen on held-out entries, else the method's own, else 0.5. With a hierarchy,
        no label has a lower one than its parent, or a label could be yes where its parent is no."""
        thresholds = self.method.thresholds()
        if self.teaching is not None and self.teaching.combination.thresholds is not None:
            thresholds = torch.from_numpy(self.teaching.combination.thresholds)
        if self.calibration is not None:
            thresholds = torch.from_numpy(self.calibration.thresholds)
        if thresholds is None:
            return np.full(len(self.names), 0.5, np.float32)
        raised: npt.NDArray[np.float32] = -self._enforce_hierarchy(-thresholds[None].cpu().numpy())[0]
        return raised

    @property
    def has_thresholds(self) -> bool:
        """Return True if thresholds were chosen, by the method or by calibration."""
        chosen = self.calibration is not None and self.calibration.goal is not None
        taught = self.teaching is not None and self.teaching.combination.thresholds is not None
        return chosen or taught or self.method.thresholds() is not None

    @cached_property
    def beliefs(self) -> npt.NDArray[np.floating[Any]] | None:
        """Beliefs about the training entries after the last epoch, [N, L]; in a folder they are memory-mapped. None
        where the method has none."""
        return self.beliefs_in_memory if self.folder is None else read_beliefs(self.folder)

    @cached_property
    def out_of_fold(self) -> npt.NDArray[np.floating[Any]] | None:
        """Out-of-fold logits of the training entries, [N, L]; None where there are none."""
        if self.folder is None:
            return self.out_of_fold_in_memory
        return read_out_of_fold(self.folder, *([] if self.teaching is None else [teaching.OUT_OF_FOLD]))

    @cached_property
    def body(self) -> nn.Module | None:
        """The frozen backbone that computed the training features of images or texts; None where there was none."""
        origin = self.method.task.items.origin
        return None if origin is None else rebuild_body(origin, str(self.method.device))

    def prepare_items(self, items: Items) -> Items:
        """Return items as the model takes them: resized, computed by its frozen backbone, encoded and conditioned like
        the training items. Refuse other kinds of items."""
        origin, items = self.method.task.items.origin, self.resize(items)
        if origin is not None and items.kind == origin.kind and self.body is not None:
            return LazyFeatures(items, self.body, origin, self.method.task.items.shape[0])
        return match_training(items, self.method.task.items)

    def resize(self, items: Items) -> Items:
        """Return images at the size that the model, or its frozen backbone, takes."""
        origin = self.method.task.items.origin
        if origin is not None and items.kind == origin.kind:
            return resize_like_training(items, origin)
        return resize_like(items, self.method.task.items)

    @contextmanager
    def last_epoch_weights(self) -> Iterator[None]:
        """Give the model the weights of its last epoch for a while, where `fit` kept them."""
        if self.progress.last is None:
            yield
            return
        best = {key: tensor.clone() for key, tensor in self.method.state_dict().items()}
        self.method.load_state_dict(self.progress.last)
        try:
            yield
        finally:
            self.method.load_state_dict(best)

    def taught_by(self, teacher: Any = None, ids: Sequence[str] | None = None) -> FittedModel:
        """Return the same model for items whose scores its teachers find by id, or by another teacher; "none" leaves
        teachers out."""
        if isinstance(teacher, str) and teacher == NONE:
            return replace(self, teaching=None)
        current = self.teaching
        if teacher is not None and current is None:
            raise SettingError("teacher: this model was trained without one. Leave it out.")
        return replace(
            self, teaching=current if teacher is None or current is None else current.with_teachers(teacher), ids=ids
        )

    def logits(self, items: Items, known: Labels | None = None) -> npt.NDArray[np.float32]:
        """Return logits [N, L]; known: labels of these items, for a head that takes them."""
        return self._stack(items, known, np.positive)

    def predict(self, items: Items, known: Labels | None = None) -> npt.NDArray[np.float32]:
        """Return probabilities of yes [N, L]."""
        return self._stack(items, known, sigmoid)

    def _stack(self, items: Items, known: Labels | None, transform: Callable[..., Any]) -> npt.NDArray[np.float32]:
        way_out = "Take them block after block (predict_proba_blocks, partly predict), or fewer items at a time."
        shape = (len(items), len(self.names))
        check_scores(*shape, "Scores", way_out)
        with thread_limit(size_of(items, np.empty((0, shape[1])))):
            return prediction.stack(self.logit_blocks(items, known), shape, transform)

    def predict_blocks(self, items: Items, known: Labels | None = None) -> Iterator[npt.NDArray[np.float32]]:
        """Yield probabilities of yes, block by block: for more items than scores fit into memory."""
        return map(sigmoid, self.logit_blocks(items, known))

    def teacher_blocks(self, items: Items) -> Iterator[npt.NDArray[np.float32]]:
        """Yield probabilities by the teachers alone, block by block."""
        if self.teaching is None or not self.teaching.combination.used:
            raise SettingError("This model has no teacher that counts. Train with --teacher names, or leave this out.")
        combined = teaching.combine(self.teaching, self.prepare_items(items), self.names, self.ids, None)
        return map(sigmoid, map(self._enforce_hierarchy, combined))

    def logit_blocks(self, items: Items, known: Labels | None = None) -> Iterator[npt.NDArray[np.float32]]:
        """Yield logits, block by block."""
        networks = (part for part in self.method.modules() if isinstance(part, Network))
        if known is not None and not any(network.takes_labels for network in networks):
            raise SettingError(
                f"known: the head {self.config.head!r} makes no use of known labels. "
                "Train with head='c-tran' (pictures) or head='label-transformer', or leave `known` out."
            )
        items = self.prepare_items(items)
        blocks = prediction.logit_blocks(self.method, items, known=known)
        if self.teaching is not None and self.teaching.combination.used:
            blocks = map(self._enforce_hierarchy, self._taught(items, known))
        return blocks if self.calibration is None else map(self._calibrate, blocks)

    def combiner(self, items: Items) -> Callable[..., npt.NDArray[np.float32]] | None:
        """Return what combines logits of the method for some rows of prepared items with its teachers; None without."""
        if self.teaching is None or not self.teaching.combination.used:
            return None
        combine = teaching.combiner(self.teaching, items, self.names, self.ids)
        return lambda logits, rows: self._enforce_hierarchy(combine(logits, rows))

    def _taught(self, items: Items, known: Labels | None) -> Iterator[npt.NDArray[np.float32]]:
        """Yield the method's logits combined with the scores of teachers."""
        assert self.teaching is not None

        def model_blocks(part: Items, rows: slice) -> Iterator[npt.NDArray[np.float32]]:
            return prediction.logit_blocks(self.method, part, known=None if known is None else known[rows])

        return teaching.combine(self.teaching, items, self.names, self.ids, model_blocks)

    def _calibrate(self, logits: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Calibrate; per-label maps can violate the hierarchy, so it is enforced again."""
        assert self.calibration is not None
        return self._enforce_hierarchy(self.calibration(logits))

    def _enforce_hierarchy(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        return self.method.enforce_hierarchy(torch.from_numpy(scores)).float().numpy()


def load(folder: Path, **modules: Part) -> FittedModel:
    """Load the finished model of a run folder. modules: the caller's own backbone or head, whose weights it holds."""
    description, tensors, record = read_finished(folder)
    for part, module in modules.items():
        rebind(description["recipe"].get(part) or "none", module, part)
    progress = training.progress_of(folder, record)
    with _refusing_damage(folder), AllocationLimit(folder, tensors):
        config, data = spell_out(ResolvedConfig.from_json(description["recipe"])), description["data"]
        count, *shape = data["shape"]
        names = None if description["features"] is None else tuple(description["features"])
        origin = Origin.read(data["made_of"], _backbone_state(tensors)) if "made_of" in data else None
        conditioning = Conditioning.from_json(data["conditioning"]) if "conditioning" in data else None
        encoding = Encoding.from_json(data["encoding"]) if "encoding" in data else None
        absent = Absent(data["kind"], tuple(shape), count, names, origin, encoding, conditioning)
        labels = tuple(description["labels"])
        method = build_method(config, absent, len(labels), names=labels)
        try:
            method.load_state({name: tensors[name] for name in tensors if name.startswith("method.")})
        except RuntimeError as error:  # of torch, where layers are not those that were saved
            if modules:
                raise CheckpointError(f"{folder}: the weights do not fit what was given for them. {error}") from None
            raise
        method.strip_training_state()
        method.notes = progress.notes
    lost = training.non_finite(method)
    if lost:
        raise CheckpointError(f"{folder}: weights of the model are not finite: {', '.join(lost[:5])}.")
    taught = teaching.read(folder, len(labels))
    return FittedModel(
        config, method, progress, description, folder, calibration=read_calibration(folder), teaching=taught
    )


def _backbone_state(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what a backbone measured on the training items."""
    return {name.removeprefix(FIRST_STAGE): tensors[name] for name in tensors if name.startswith(FIRST_STAGE)}


def set_teaching(fitted: FittedModel, taught: Teaching | None, out_of_fold: npt.NDArray[np.float32] | None) -> None:
    """Set the teachers of a model and of its folder, with the combined out-of-fold logits; None removes them."""
    fitted.teaching = taught
    if out_of_fold is not None:
        fitted.out_of_fold = out_of_fold
    if fitted.folder is not None and process_group().first:
        with atomic_io.locked(fitted.folder):
            teaching.write(fitted.folder, taught, out_of_fold)
    process_group().wait()


def calibrate(fitted: FittedModel, calibration: Calibration | None) -> None:
    """Set the calibration of a model and of its folder; None removes it. The run stays the same."""
    fitted.calibration = calibration
    if fitted.folder is not None and process_group().first:
        write_calibration(fitted.folder, calibration)
    process_group().wait()


@contextmanager
def _refusing_damage(folder: Path) -> Iterator[None]:
    """Raise one kind of error for everything that can be wrong with a folder: an unknown name, a setting, layers of
    other sizes."""
    try:
        yield
    except (CheckpointError, MissingModule):
        raise
    except Exception as error:
        text = str(error) if isinstance(error, PartlyError) else f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{folder}: cannot be loaded, its parts do not fit together. {text}") from error


def save(fitted: FittedModel, folder: Path, overwrite: bool = False) -> None:
    """Write a finished model into a new folder, without training state and beliefs. overwrite: replace another saved
    model. Of several processes only the first writes."""
    if not current_rank().first:
        return
    with overwrite_guard(folder, overwrite, SAVED), atomic_io.locked(folder):
        if checkpoint.load(folder) is not None:
            raise CheckpointError(f"{folder}: there is a run in this folder already. Choose another one.")
        atomic_io.write_checksummed(folder / "run.json", fitted.description)
        training.save(folder, fitted.method, Clock(fitted.config.seed, fitted.config.epochs), fitted.progress)
        write_calibration(folder, fitted.calibration)
        teaching.write(folder, fitted.teaching)


def install_model(fitted: FittedModel, folder: Path) -> None:
    """Make this the model of a folder that is locked and claimed already; replace the one before it."""
    record, beliefs = None, fitted.beliefs
    if beliefs is not None and fitted.folder is not None:
        ids = read_ids(fitted.folder) if (fitted.folder / IDS).exists() else None
        record = checkpoint.save_beliefs(folder, beliefs.shape, beliefs.dtype, [beliefs], ids)
    training.save(folder, fitted.method, Clock(fitted.config.seed), fitted.progress, beliefs=record)
    teaching.write(folder, fitted.teaching)
