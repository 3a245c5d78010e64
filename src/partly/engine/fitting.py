"""Training by a recipe, what it leaves behind, and how that is saved, loaded and asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
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
from partly.distributed.group import Group, process_group
from partly.distributed.launched import launched
from partly.distributed.threads import limited, limiting, size_of
from partly.engine import checkpoint, training
from partly.engine.checkpoint import IDS
from partly.engine.folder import (
    SAVED,
    claim,
    decides,
    describe,
    digest,
    finished,
    making_room,
    read_beliefs,
    read_calibration,
    read_ids,
    read_out_of_fold,
    write_calibration,
)
from partly.engine.memory import Ceiling, check_memory, check_scores
from partly.engine.recipe import Recipe
from partly.engine.training import Progress, Validation, Watch
from partly.errors import CheckpointError, DataError, PartlyError, SettingError
from partly.items import (
    Absent,
    Conditioning,
    Encoding,
    Items,
    Origin,
    encode_like,
    prepare_for_training,
    prepare_like,
    reorder_features,
    resize_like,
)
from partly.labels import Labels, scored
from partly.labels.weights import Weights
from partly.method import Method
from partly.method.base import FIRST_STAGE
from partly.networks import Network
from partly.networks.custom_modules import MissingModule, Part, rebind
from partly.networks.lazy_features import LazyFeatures, rebuild_body, resize_like_training
from partly.pool import Pool


@dataclass
class Fitted:
    """What a run leaves behind."""

    recipe: Recipe
    method: Method  # it only predicts
    progress: Progress
    description: dict[str, Any]  # what was run on what
    folder: Path | None = None  # where it lies, if anywhere
    # Where there is no folder: its beliefs, and logits of the training entries by who has not seen them.
    beliefs_in_memory: npt.NDArray[np.floating[Any]] | None = None
    unseen_in_memory: npt.NDArray[np.floating[Any]] | None = None
    calibration: Calibration | None = None  # from the method's logits to probabilities and thresholds
    reason: str = ""  # why it is this method, where somebody has just asked for it

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.description["labels"])

    @property
    def crosses(self) -> bool:
        """Whether the method has scores of training entries by who has not seen them."""
        return self.method.provides_out_of_fold

    @property
    def thresholds(self) -> npt.NDArray[np.float32]:
        """From which probability on each label is called yes, [L]: chosen on held-out entries, else the method's own,
        else 0.5; where there is a hierarchy, of no label below its parent's, or a yes could stand below a no."""
        own = self.method.thresholds()
        if self.calibration is not None:
            own = torch.from_numpy(self.calibration.thresholds)
        if own is None:
            return np.full(len(self.names), 0.5, np.float32)
        raised: npt.NDArray[np.float32] = -self._coherent(-own[None].cpu().numpy())[0]
        return raised

    @property
    def chooses(self) -> bool:
        """Whether thresholds were chosen, by the method or afterwards."""
        chosen = self.calibration is not None and self.calibration.goal is not None
        return chosen or self.method.thresholds() is not None

    @cached_property
    def beliefs(self) -> npt.NDArray[np.floating[Any]] | None:
        """What the method believes of the training entries, [N, L], when its last epoch was over; from a folder they
        are mapped, and checked when first asked for. None where it believes nothing."""
        return self.beliefs_in_memory if self.folder is None else read_beliefs(self.folder)

    @cached_property
    def out_of_fold(self) -> npt.NDArray[np.floating[Any]] | None:
        """Logits of the training entries by models that have not seen the item, [N, L]; None where there are none."""
        return self.unseen_in_memory if self.folder is None else read_out_of_fold(self.folder)

    @cached_property
    def body(self) -> nn.Module | None:
        """What made the features that the model was trained on, of pictures or texts; None where it was not trained on
        such features."""
        origin = self.method.task.items.origin
        return None if origin is None else rebuild_body(origin, str(self.method.device))

    def seen(self, items: Items) -> Items:
        """These items as the model was trained on them; refused where they are not of that kind. Where it was trained
        on features that a backbone made, these are made of what the backbone takes."""
        origin, items = self.method.task.items.origin, self.shown(items)
        if origin is not None and items.kind == origin.kind and self.body is not None:
            return LazyFeatures(items, self.body, origin, self.method.task.items.shape[0])
        items = encode_like(items, self.method.task.items)
        items = reorder_features(items, self.method.task.items.names)
        self._check_items(items)
        return prepare_like(items, self.method.task.items)

    def shown(self, items: Items) -> Items:
        """Pictures at the size at which the model, or what makes its features, looks at them."""
        origin = self.method.task.items.origin
        if origin is not None and items.kind == origin.kind:
            return resize_like_training(items, origin)
        return resize_like(items, self.method.task.items)

    def _check_items(self, items: Items) -> None:
        here, there = ((one.kind, one.shape) for one in (items, self.method.task.items))
        if here != there:
            raise DataError(
                f"The model was trained on {there[0]} of {list(there[1])}; these are {here[0]} of {list(here[1])}."
            )

    @contextmanager
    def as_last(self) -> Iterator[None]:
        """The model as it was after its last epoch, for as long as this lasts; as it is, where that was the best one
        or nobody asked to keep it."""
        if self.progress.last is None:
            yield
            return
        best = {key: tensor.clone() for key, tensor in self.method.state_dict().items()}
        self.method.load_state_dict(self.progress.last)
        try:
            yield
        finally:
            self.method.load_state_dict(best)

    def logits(self, items: Items, known: Labels | None = None) -> npt.NDArray[np.float32]:
        """[N, L]; `known`: what is known of these items, for a head that makes use of it."""
        return self._whole(np.positive, items, known)

    def _whole(self, made: Callable[..., Any], items: Items, known: Labels | None) -> npt.NDArray[np.float32]:
        """What is made of the logits, block after block while they are in the cache."""
        way_out = "Take them block after block (predict_proba_blocks, partly predict), or fewer items at a time."
        check_scores(len(items), len(self.names), "Scores", way_out)
        scores = np.empty((len(items), len(self.names)), np.float32)
        with limited(size_of(items, scores)):
            for rows, block in scored.enumerate_rows(self.logit_blocks(items, known)):
                made(block, out=scores[rows])
        return scores

    def logit_blocks(self, items: Items, known: Labels | None = None) -> Iterator[npt.NDArray[np.float32]]:
        """`logits`, batch after batch, for more items than scores can be held of."""
        blocks = training.logit_blocks(self.method, self._checked(items, known), known=known)
        return blocks if self.calibration is None else map(self._calibrated, blocks)

    def _calibrated(self, logits: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Maps of their own could put a label above its parent again."""
        assert self.calibration is not None
        return self._coherent(self.calibration(logits))

    def _coherent(self, scores: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        return self.method.enforce_hierarchy(torch.from_numpy(scores)).float().numpy()

    def predict(self, items: Items, known: Labels | None = None) -> npt.NDArray[np.float32]:
        """Probabilities of yes [N, L]."""
        return self._whole(sigmoid, items, known)

    def predict_blocks(self, items: Items, known: Labels | None = None) -> Iterator[npt.NDArray[np.float32]]:
        """`predict`, batch after batch."""
        return map(sigmoid, self.logit_blocks(items, known))

    def _checked(self, items: Items, known: Labels | None) -> Items:
        """The items as the model was trained on them."""
        parts = (part for part in self.method.modules() if isinstance(part, Network))
        if known is not None and not any(network.takes_labels for network in parts):
            raise SettingError(
                f"known: the head {self.recipe.head!r} makes no use of known labels. "
                "Train with head='c-tran' (pictures) or head='label-transformer', or leave `known` out."
            )
        return self.seen(items)


@limiting(lambda recipe, items, labels, **_: size_of(items, labels))
def fit(
    recipe: Recipe,
    items: Items,
    labels: Labels,
    *,
    validation: Validation | None = None,
    weights: Weights | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    save_seconds: float = training.SAVE_SECONDS,
    watch: Watch | None = None,
    start: Mapping[str, Tensor] | None = None,
    keep_entries: bool = False,
    keep_last: bool = False,
) -> Fitted:
    """Train by the recipe, or go on where the folder says that it stopped.

    `weights`: how much items [N, 1] or entries [N, L] count, see `labels.weights`.
    `start`: what `state_of` gives of another run of the same method, to begin from instead of fresh weights and
    beliefs; `keep_entries`: so that this one can be such a start. `keep_last`: so that `Fitted.as_last` can be asked.
    """
    items = prepare_for_training(recipe.shown(items))
    recipe.check_validation(validation is not None)
    if validation is not None:
        validation = Validation(prepare_like(validation.items, items), validation.labels)
    check_memory(recipe, items, labels, validation, copies=(folder is None) + (start is not None))
    if validation is not None:
        validation.items.statistics  # noqa: B018, refuses what is not finite, in the pass that makes their digest
    # Before the folder is claimed: a recipe may be refused here.
    method = recipe.build(items, labels.shape[1], labels).to(device)
    _check_weighs(recipe, method, weights)
    check_memory(recipe, items, labels, validation, copies=(folder is None) + (start is not None), method=method)
    group = _spread_over(recipe, method)
    description = describe(recipe, items, labels, validation, weights)
    if start is not None:
        method.load_state(start)
        description["start"] = {name: digest(start[name]) for name in start}
        del start
    group.assert_consistent({**decides(description), **method.weights()})
    with atomic_io.locked(folder) if folder and group.first else nullcontext():
        if folder and group.first:
            claim(folder, description)
        pool = Pool(items, labels, recipe.batch_size, device, group, weights)
        progress = training.train(
            method,
            pool,
            Clock(recipe.seed, recipe.epochs, method.steps(pool), last=pool.last),
            validation=validation,
            folder=folder,
            save_seconds=save_seconds,
            watch=watch,
            keep_entries=keep_entries,
            keep_last=keep_last,
        )
        if folder and group.first:
            atomic_io.write_json(folder / "history.json", progress.history)
        group.wait()  # so that the folder can be read by all
    kept = (None, None) if folder else (_whole(method, training.believed), _whole(method, training.unseen))
    method.strip_training_state()
    return Fitted(recipe, method, progress, description, folder, *kept)


def _check_weighs(recipe: Recipe, method: Method, weights: Weights | None) -> None:
    weighs = method.sample_weight_support()
    if weights is None or weighs == "entries" or (weighs == "items" and weights.shape[1] == 1):
        return
    why = "chooses or couples entries in its own way, so that a weight of one has no clear meaning. Leave them out"
    if weighs == "items":
        why = "has one loss for all labels of an item. Give a weight for each item, [N]"
    raise SettingError(
        f"sample_weight: {recipe.method} {why}, or take a method that weighs entries: auto, per-label, bce, ..."
    )


def _spread_over(recipe: Recipe, method: Method) -> Group:
    """The processes that are to train this; refused, where they could not share it."""
    group = process_group()
    if group.count > 1 and not method.supports_distributed:
        raise SettingError(
            f"{recipe.method} with the head {recipe.head} is solved at once, not trained batch by batch: {group.count} "
            "processes would only repeat each other. Start it without torchrun or accelerate, or take a method and a "
            "head that are trained by steps (head_settings={'solve': False} trains a head by steps that is solved)."
        )
    return group


def _whole(
    method: Method, blocks: Callable[[Method], Iterator[npt.NDArray[np.floating[Any]]]]
) -> npt.NDArray[np.floating[Any]] | None:
    whole, start = None, 0
    for part in blocks(method):
        if whole is None:
            whole = np.empty((len(method.task.items), part.shape[1]), part.dtype)
        whole[start : start + len(part)] = part
        start += len(part)
    return whole


def load(folder: Path, **given: Part) -> Fitted:
    """The finished model in a run folder; `given`: the caller's own backbone or head, of which it holds the weights."""
    description, tensors, record = finished(folder)
    for part, own in given.items():
        rebind(description["recipe"].get(part) or "none", own, part)
    progress = training.progress_of(folder, record)
    with _doubted(folder), Ceiling(folder, tensors):
        recipe, data = Recipe(**description["recipe"]), description["data"]
        count, *shape = data["shape"]
        names = None if description["features"] is None else tuple(description["features"])
        origin = Origin.read(data["made_of"], _fitted_backbone(tensors)) if "made_of" in data else None
        conditioning = Conditioning.from_json(data["conditioning"]) if "conditioning" in data else None
        encoding = Encoding.from_json(data["encoding"]) if "encoding" in data else None
        absent = Absent(data["kind"], tuple(shape), count, names, origin, encoding, conditioning)
        labels = tuple(description["labels"])
        method = recipe.build(absent, len(labels), names=labels)
        try:
            method.load_state({name: tensors[name] for name in tensors if name.startswith("method.")})
        except RuntimeError as error:  # of torch, where layers are not those that were saved
            if given:
                raise CheckpointError(f"{folder}: the weights do not fit what was given for them. {error}") from None
            raise
        method.strip_training_state()
        method.notes = progress.notes
    lost = training.undefined(method)
    if lost:
        raise CheckpointError(f"{folder}: weights of the model are not finite: {', '.join(lost[:5])}.")
    return Fitted(recipe, method, progress, description, folder, calibration=read_calibration(folder))


def _fitted_backbone(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a backbone had measured on the training items."""
    return {name.removeprefix(FIRST_STAGE): tensors[name] for name in tensors if name.startswith(FIRST_STAGE)}


def calibrate(fitted: Fitted, calibration: Calibration | None) -> None:
    """Give a model these probabilities and thresholds, and its folder too; None takes away what an earlier call gave.
    The run is the same: it can be calibrated anew as often as one likes, and nothing is trained for it."""
    fitted.calibration = calibration
    if fitted.folder is not None and process_group().first:
        write_calibration(fitted.folder, calibration)
    process_group().wait()


@contextmanager
def _doubted(folder: Path) -> Iterator[None]:
    """A folder of anybody's making can fail in a dozen ways (an unknown name, a setting, layers of other sizes): all of
    them mean that this is no model."""
    try:
        yield
    except (CheckpointError, MissingModule):
        raise
    except Exception as error:
        told = str(error) if isinstance(error, PartlyError) else f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{folder}: cannot be loaded, its parts do not fit together. {told}") from error


def save(fitted: Fitted, folder: Path, overwrite: bool = False) -> None:
    """Write a finished model into a folder of its own, in the form that `load` reads: the model, and nothing that was
    there to train it, nor what it believes of the training entries; `overwrite`: in the place of another saved model.
    Of several processes only the first writes."""
    if not launched().first:
        return
    with making_room(folder, overwrite, SAVED), atomic_io.locked(folder):
        if checkpoint.load(folder) is not None:
            raise CheckpointError(f"{folder}: there is a run in this folder already. Choose another one.")
        atomic_io.write_checksummed(folder / "run.json", fitted.description)
        training.save(folder, fitted.method, Clock(fitted.recipe.seed, fitted.recipe.epochs), fitted.progress)
        write_calibration(folder, fitted.calibration)


def publish(fitted: Fitted, folder: Path) -> None:
    """Make this the model of a folder that is held and claimed already, in the place of the one before it."""
    said, beliefs = None, fitted.beliefs
    if beliefs is not None and fitted.folder is not None:
        ids = read_ids(fitted.folder) if (fitted.folder / IDS).exists() else None
        said = checkpoint.save_beliefs(folder, beliefs.shape, beliefs.dtype, [beliefs], ids)
    training.save(folder, fitted.method, Clock(fitted.recipe.seed), fitted.progress, beliefs=said)
