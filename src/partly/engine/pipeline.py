"""The way from a configuration and data to a model: prepare, resolve, fit, calibrate.

`prepare` computes what holds for any part of the data: features by a frozen backbone, and labels that the hierarchy
implies. `resolve` fills in the configuration for the training part and returns a frozen plan. `fit` trains the plan;
`fit_calibrated` adds out-of-fold models, calibration, and a check that something was learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partly import calibration
from partly.config import ResolvedConfig, TrainConfig
from partly.distributed.devices import device_of
from partly.distributed.launched import current_rank
from partly.distributed.threads import limit_threads, size_of
from partly.engine import teaching
from partly.engine.cross_fitting import check_folds, cross_fit
from partly.engine.feature_cache import precompute_features
from partly.engine.fitted_model import FittedModel, calibrate, load, set_teaching
from partly.engine.fitting import fit
from partly.engine.memory import estimate_memory
from partly.engine.plan import Plan
from partly.engine.progress_bar import progress_callback
from partly.engine.resolution import match_training, prepare_images, resolve_config
from partly.engine.training import Validation
from partly.engine.training_check import MAX_CHECKED_ITEMS, warn_if_all_called_yes, warn_if_nothing_learned
from partly.engine.warm_start import match_labels, warm_start
from partly.errors import LabelError, SettingError
from partly.items import Items, TableRows, condition_like, prepare_for_training
from partly.labels import Hierarchy, Labels
from partly.labels.weights import Weights
from partly.teachers import NONE

DEFAULT_FOLDS = 5  # of calibration and thresholds


class PreparedData(NamedTuple):
    """Items and labels after `prepare`; subsets are prepared, too."""

    items: Items
    labels: Labels


Data = PreparedData | tuple[Items, Labels]


def apply_hierarchy(config: TrainConfig, labels: Labels) -> Labels:
    """Return labels with everything that the hierarchy of the configuration implies; refuse contradictions."""
    return labels if config.hierarchy is None else Hierarchy(config.hierarchy).deduce(labels)


def prepare(config: TrainConfig, data: Data, like: Items | None = None) -> PreparedData:
    """Compute features by a frozen backbone, and apply the hierarchy. Data that are already prepared, or belong to a
    resolved configuration, are returned unchanged. like: training items, whose backbone computes features of these
    too."""
    if isinstance(data, PreparedData):
        return data
    items, labels = data
    if isinstance(config, ResolvedConfig):
        return PreparedData(items, labels)
    return PreparedData(
        precompute_features(items, config, device_of(config.device), like), apply_hierarchy(config, labels)
    )


@limit_threads(lambda config, data, *_, **__: size_of(*data))
def resolve(
    config: TrainConfig,
    data: Data,
    validation: Data | None = None,
    weights: Weights | None = None,
    reason: str = "",
) -> Plan:
    """Return the plan of a run: every fact that follows from configuration and data, each computed once.

    Parameters
    ----------
    config : TrainConfig
        Requested configuration. A `ResolvedConfig` is not changed.
    data : PreparedData or (Items, Labels)
        Training items and labels.
    validation : PreparedData or (Items, Labels), optional
        Items that choose the best epoch.
    weights : array of [N, 1] or [N, L], optional
        From `check_weights`.
    reason : str
        Reason for the method, if the configuration is resolved.
    """
    data = prepare(config, data)
    if isinstance(data.items, TableRows) and not config.encode:
        data.items.refuse()
    items, labels = prepare_for_training(data.items), data.labels
    if not labels.known_per_item().any() and not isinstance(config, ResolvedConfig):
        config = _without_labels(config, items, labels)
    resolved, method_reason = resolve_config(config, items, labels)
    calibration.check_options(resolved.calibrate, resolved.thresholds)
    folds = fold_count(resolved)
    if folds is not None:
        check_folds(folds, *labels.shape)
    items = prepare_images(resolved, items)
    held_out = None
    if validation is not None:
        held = prepare(config, validation, items)
        held_out = Validation(match_training(held.items, items), held.labels)
    memory = estimate_memory(resolved, items, labels, held_out)
    return Plan(resolved, items, labels, held_out, weights, method_reason or reason, memory)


def _without_labels(config: TrainConfig, items: Items, labels: Labels) -> TrainConfig:
    """Return a configuration of the smallest model, whose scores do not count: a teacher gives all scores."""
    if not teaching.choose(config, items, labels):
        raise LabelError(
            f"Y: of {labels.shape[0]} x {labels.shape[1]} entries none is known: nothing to learn from. Give labels, "
            "or a teacher (teacher='names', --teacher names)."
        )
    return replace(config, method="assume-negative", head="linear", epochs=1, recipe=None)


def fold_count(config: TrainConfig) -> int | None:
    """Return the number of folds for out-of-fold scores; None where nothing needs them."""
    calibrates = config.calibrate is not None or config.thresholds is not None or _asks_for_teacher(config)
    return DEFAULT_FOLDS if config.folds is None and calibrates else config.folds


def _asks_for_teacher(config: TrainConfig) -> bool:
    return config.teacher is not None and not (isinstance(config.teacher, str) and config.teacher == NONE)


@limit_threads(lambda plan, *_, **__: size_of(plan.items, plan.labels))
def fit_calibrated(
    plan: Plan, start_from: str | Path | None = None, label_sources: Mapping[str, Sequence[str]] | None = None
) -> FittedModel:
    """Train a plan, with progress and into `run_dir` as its configuration says; then calibrate.

    start_from, label_sources: see `Classifier.fit`.
    """
    config = plan.config
    folder = None if config.run_dir is None else Path(config.run_dir)
    with progress_callback(config.method, config.head, config.epochs, config.progress) as callback:
        options: dict[str, Any] = {"folder": folder, "device": device_of(config.device), "callback": callback}
        start = None
        if start_from is not None:
            plan, start = _start(plan, Path(start_from), label_sources)
        plan = teaching.with_prior(plan)
        fitted = fit(plan, start=start, **options)
        folds, known = fold_count(config), bool(plan.labels.known_per_item().any())
        if folds is not None and known and not fitted.has_out_of_fold:
            fitted.out_of_fold = cross_fit(plan, folds, **options)
    teach(plan, fitted)
    fitted_calibration = None
    if config.calibrate is not None or config.thresholds is not None:
        thresholds = fitted.thresholds if fitted.has_thresholds else None
        fitted_calibration = calibration.fit_calibration(
            fitted.out_of_fold, plan.labels, config.calibrate, config.thresholds, thresholds
        )
    calibrate(fitted, fitted_calibration)
    fitted.reason = fitted.method.notes.get("reason", plan.reason)
    if current_rank().first:
        _check_learned(plan, fitted)
    return fitted


def teach(plan: Plan, fitted: FittedModel) -> None:
    """Weigh teachers against the model on out-of-fold logits, where there are both."""
    taught, known = None, bool(plan.labels.known_per_item().any())
    if fitted.out_of_fold is not None or not known:
        teachers = teaching.choose(plan.config, plan.items, plan.labels)
        if teachers:
            taught = teaching.fit(plan, teachers, fitted.out_of_fold if known else None)
    set_teaching(fitted, *(taught or (None, None)))


def _start(plan: Plan, folder: Path, label_sources: Mapping[str, Sequence[str]] | None) -> tuple[Plan, Any]:
    """Return the plan with items conditioned as those of an earlier run, and the weights to start from."""
    before = load(folder)
    trained = before.method.task.items
    if plan.items.encoding != trained.encoding:
        raise SettingError(
            f"start_from: {folder} encodes the columns of its table otherwise than these items. "
            "Encode them before (pandas.get_dummies), in both cases alike, or train anew."
        )
    items = condition_like(plan.items, trained)  # the first layer is taken over
    held_out = plan.validation
    if held_out is not None:
        held_out = Validation(condition_like(held_out.items, trained), held_out.labels)
    plan = replace(plan, items=items, validation=held_out)
    hierarchy = None if plan.config.hierarchy is None else Hierarchy(plan.config.hierarchy)
    sources = match_labels(plan.labels.names, before.names, label_sources, hierarchy)
    return plan, warm_start(before, plan, sources)


def _check_learned(plan: Plan, fitted: FittedModel) -> None:
    """Warn about a model that learned nothing, whatever its teachers know."""
    alone = replace(fitted, teaching=None)

    def predict(rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        return alone.predict(plan.items[rows])

    method, labels, count = plan.config.method, plan.labels, MAX_CHECKED_ITEMS[plan.items.kind]
    if not warn_if_all_called_yes(method, labels, predict, alone.thresholds, count):
        warn_if_nothing_learned(method, labels, predict, count)
