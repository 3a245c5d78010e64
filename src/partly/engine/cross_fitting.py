"""Out-of-fold scores of the training entries, by further models that each leave out one fold of the items."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import atomic_io
from partly.clock import seed_for
from partly.distributed.group import process_group
from partly.engine import checkpoint
from partly.engine.fitting import fit
from partly.engine.memory import check_scores
from partly.engine.plan import Plan
from partly.engine.training import StepCallback
from partly.errors import SettingError
from partly.executors import is_parallel, run_parts


def check_folds(folds: Any, items: int, labels: int) -> None:
    """Refuse a bad number of folds, or scores that do not fit into memory, before anything is trained."""
    if isinstance(folds, bool) or not isinstance(folds, Integral) or not 2 <= int(folds) <= items:
        raise SettingError(f"folds = {folds!r} must be a whole number from 2 to the number of items, {items}.")
    way_out = "Leave out folds, calibrate and thresholds, and calibrate the model on other items afterwards."
    check_scores(items, labels, "Out-of-fold scores", way_out)


def cross_fit(
    plan: Plan,
    folds: int,
    *,
    folder: Path | None = None,
    device: str = "cpu",
    callback: StepCallback | None = None,
) -> npt.NDArray[np.float32]:
    """Return out-of-fold logits of all training entries, [N, L]: one run per fold, each resumable in its own folder."""
    rng = np.random.default_rng(seed_for(plan.config.seed, "cross-fit"))
    fold = rng.permutation(np.arange(len(plan.items)) % folds)
    scores = np.empty(plan.labels.shape, np.float32)
    watch = None if is_parallel() else callback  # a worker shows no progress
    work = partial(_fit_fold, plan, fold, folder=folder, device=device, callback=watch)
    for k, held_out in run_parts(range(folds), work):
        scores[fold == k] = held_out
    if folder is not None and process_group().first:
        with atomic_io.locked(folder):
            checkpoint.save_out_of_fold(folder, scores.shape, [scores])
    return scores


def _fit_fold(
    plan: Plan, fold: npt.NDArray[np.int64], k: int, *, folder: Path | None, device: str, callback: StepCallback | None
) -> npt.NDArray[np.float32]:
    """Return the logits of the items of a fold by a model of the others."""
    rows, held_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
    fold_folder = None if folder is None else folder / f"fold-{k + 1}-of-{int(fold.max()) + 1}"
    part = fit(plan.subset(rows), folder=fold_folder, device=device, callback=callback)
    scores: npt.NDArray[np.float32] = part.logits(plan.items[held_out])
    return scores
