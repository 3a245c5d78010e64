"""Models that have not seen an item, for scores of all training entries by who has not seen them."""

from __future__ import annotations

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
from partly.engine.recipe import Recipe
from partly.engine.training import Watch
from partly.errors import SettingError
from partly.items import Items
from partly.labels import Labels
from partly.labels.weights import Weights


def check_folds(folds: Any, items: int, labels: int) -> None:
    """Refuse what is no number of folds, or scores that cannot be held, before anything is trained."""
    if isinstance(folds, bool) or not isinstance(folds, Integral) or not 2 <= int(folds) <= items:
        raise SettingError(f"folds = {folds!r} must be a whole number from 2 to the number of items, {items}.")
    way_out = "Leave out folds, calibrate and thresholds, and calibrate the model on other items afterwards."
    check_scores(items, labels, "Out-of-fold scores", way_out)


def cross_fit(
    recipe: Recipe,
    items: Items,
    labels: Labels,
    folds: int,
    *,
    weights: Weights | None = None,
    folder: Path | None = None,
    device: str = "cpu",
    watch: Watch | None = None,
) -> npt.NDArray[np.float32]:
    """Logits of every training entry by a model that has not seen the item, [N, L]: one run for each fold of the items,
    in a folder of its own where there is one, so that after a kill it goes on."""
    check_folds(folds, *labels.shape)
    rng = np.random.default_rng(seed_for(recipe.seed, "cross-fit"))
    fold = rng.permutation(np.arange(len(items)) % folds)
    scores = np.empty(labels.shape, np.float32)
    for k in range(folds):
        seen, out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        where = None if folder is None else folder / f"fold-{k + 1}-of-{folds}"
        counts = None if weights is None else weights[seen]
        part = fit(recipe, items[seen], labels[seen], weights=counts, folder=where, device=device, watch=watch)
        scores[out] = part.logits(items[out])
    if folder is not None and process_group().first:
        with atomic_io.locked(folder):
            checkpoint.save_out_of_fold(folder, scores.shape, [scores])
    return scores
