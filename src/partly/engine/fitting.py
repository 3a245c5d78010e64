"""fit: train a plan, or resume it from its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from partly import atomic_io
from partly.clock import Clock
from partly.distributed.group import Group, process_group
from partly.distributed.threads import limit_threads, size_of
from partly.engine import training
from partly.engine.fitted_model import FittedModel
from partly.engine.folder import claim, describe, digest, run_identity
from partly.engine.memory import check_memory
from partly.engine.plan import Plan
from partly.engine.step_search import Steps, choose_steps, use_start_features
from partly.engine.training import StepCallback
from partly.errors import SettingError
from partly.method import Method
from partly.optim import schedules
from partly.pool import Pool


@limit_threads(lambda plan, **_: size_of(plan.items, plan.labels))
def fit(
    plan: Plan,
    *,
    folder: Path | None = None,
    device: str = "cpu",
    save_seconds: float = training.SAVE_SECONDS,
    callback: StepCallback | None = None,
    start: Mapping[str, Tensor] | None = None,
    keep_entries: bool = False,
    keep_last: bool = False,
) -> FittedModel:
    """Train a plan; with a folder, resume there.

    Parameters
    ----------
    plan : Plan
        From `resolve`.
    folder : Path, optional
        Run folder for checkpoints and the finished model.
    device : str
        A torch device.
    save_seconds : float
        Time between checkpoints.
    callback : callable, optional
        Called after each step with the clock and the logs.
    start : mapping, optional
        State to begin from: `state_of` another run of the same method, or `warm_start`.
    keep_entries : bool
        Save per-entry state with the finished model, so that another run can start from it.
    keep_last : bool
        Keep the weights of the last epoch for `FittedModel.last_epoch_weights`.
    """
    config, items, labels, validation = plan.config, plan.items, plan.labels, plan.validation
    if validation is None and schedules.needs_validation(config.schedule):
        raise SettingError(
            f"schedule = {config.schedule!r} goes by the score of validation items, and there are none. Give some "
            "(`validation` of fit, --hold-out of the command line), or take another schedule."
        )
    copies = (folder is None) + (start is not None)
    check_memory(plan, copies)
    if validation is not None:
        validation.items.statistics  # noqa: B018, refuses what is not finite, in the pass that computes their digest
    # Before the folder is claimed: a plan may be refused here.
    method = plan.build().to(device)
    _check_weights(plan, method)
    check_memory(plan, copies, method)
    steps: Steps | None = None
    if method.task.start is not None and start is None:
        method, steps = choose_steps(plan, method)
        method = method.to(device)
    group = _group_for(plan, method)
    description = describe(plan)
    if start is not None:
        method.load_state(start)
        description["start"] = {name: digest(start[name]) for name in start}
        del start
    group.assert_consistent({**run_identity(description), **method.weights()})
    with atomic_io.locked(folder) if folder and group.first else nullcontext():
        if folder and group.first:
            claim(folder, description)
        read = use_start_features(method.task, items) if group.count == 1 else items
        pool = Pool(read, labels, config.batch_size, device, group, plan.weights)
        progress = training.train(
            method,
            pool,
            Clock(config.seed, config.epochs, method.steps(pool), last=pool.last),
            validation=validation,
            folder=folder,
            save_seconds=save_seconds,
            callback=callback,
            keep_entries=keep_entries,
            keep_last=keep_last,
            stop_after=None if steps is None else steps.epochs,
            notes=None if steps is None else steps.notes(config.lr, plan.reason),
        )
        if folder and group.first:
            atomic_io.write_json(folder / "history.json", progress.history)
        group.wait()  # so that all can read the folder
    fitted = FittedModel(config, method, progress, description, folder)
    if folder is None:
        fitted.beliefs_in_memory = _stack(method, training.belief_blocks)
        fitted.out_of_fold_in_memory = _stack(method, training.out_of_fold_blocks)
    method.strip_training_state()
    return fitted


def _check_weights(plan: Plan, method: Method) -> None:
    support, weights = method.sample_weight_support(), plan.weights
    if weights is None or support == "entries" or (support == "items" and weights.shape[1] == 1):
        return
    why = "chooses or couples entries in its own way, so that a weight of one has no clear meaning. Leave them out"
    if support == "items":
        why = "has one loss for all labels of an item. Give a weight for each item, [N]"
    raise SettingError(
        f"sample_weight: {plan.config.method} {why}, or take a method that weighs entries: auto, per-label, bce, ..."
    )


def _group_for(plan: Plan, method: Method) -> Group:
    """Return the processes that train together; refuse a method that they cannot share."""
    group = process_group()
    if group.count > 1 and not method.supports_distributed:
        raise SettingError(
            f"{plan.config.method} with the head {plan.config.head} is solved at once, not trained batch by batch: "
            f"{group.count} processes would only repeat each other. Start it without torchrun or accelerate, or take a "
            "method and a head that are trained by steps (head_settings={'solve': False} trains a head by steps that "
            "is solved)."
        )
    return group


def _stack(
    method: Method, blocks: Callable[[Method], Iterator[npt.NDArray[np.floating[Any]]]]
) -> npt.NDArray[np.floating[Any]] | None:
    matrix, start = None, 0
    for part in blocks(method):
        if matrix is None:
            matrix = np.empty((len(method.task.items), part.shape[1]), part.dtype)
        matrix[start : start + len(part)] = part
        start += len(part)
    return matrix
