"""Warn when a trained model cannot rank even the entries it was trained on.

Such a model usually comes from features on an extreme scale, a learning rate that is far off, or labels that have
nothing to do with the items. Without the warning its probabilities look like any other model's.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import model_choice
from partly.errors import LearnedNothingWarning
from partly.labels import Labels

MIN_TRAINING_AUC = 0.55
MAX_CHECKED_ITEMS = {"features": 1000, "pictures": 100, "texts": 200}


def warn_if_nothing_learned(
    name: str, labels: Labels, predict: Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]], max_items: int = 1000
) -> None:
    """Warn if the mean AUC on a sample of the training items is close to chance.

    Parameters
    ----------
    name : str
        Name of the method, for the message.
    labels : Labels [N, L]
        Observed training labels.
    predict : callable
        Maps row indices to scores [len(rows), L].
    max_items : int
        Largest number of training items to score.
    """
    auc = training_auc(labels, predict, max_items)
    if auc < MIN_TRAINING_AUC:
        warnings.warn(
            f"{name} learned nothing: on its own training items its mean AUC is {auc:.2f} (chance is 0.5). Do not use "
            "its predictions. Check that items and labels belong together (partly doctor), that no feature is constant "
            "or on an extreme scale, and, if you set a learning rate, try a smaller one; or use method='auto'.",
            LearnedNothingWarning,
            stacklevel=2,
        )


def warn_if_all_called_yes(
    name: str,
    labels: Labels,
    predict: Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]],
    thresholds: npt.NDArray[Any],
    max_items: int = 1000,
) -> bool:
    """Warn if only yes is known in training and every entry of a sample is called yes; return whether it is so.

    This happens to losses that ignore unknown entries (`bce`): nothing tells them what a no looks like. Parameters as
    in `warn_if_nothing_learned`; thresholds [L].
    """
    (yes, no), rows = labels.counts(), _sample(labels, max_items)
    if no.any() or not (yes < len(labels)).any() or not len(rows) or not (predict(rows) >= thresholds).all():
        return False
    remedy = "Give some known no's, and check that items and labels belong together (partly doctor)."
    if name != "auto":
        remedy = "Use method='auto', which learns from unknown entries too, or give some known no's."
    warnings.warn(
        f"{name} calls every entry yes: no entry is known to be no, so nothing tells it what a no looks like. {remedy}",
        LearnedNothingWarning,
        stacklevel=2,
    )
    return True


def _sample(labels: Labels, max_items: int) -> npt.NDArray[np.int64]:
    """Items with a known entry, at even distances."""
    rows = np.flatnonzero(labels.known_per_item())
    return rows if len(rows) <= max_items else rows[np.linspace(0, len(rows) - 1, max_items).astype(np.int64)]


def training_auc(
    labels: Labels, predict: Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]], max_items: int = 1000
) -> float:
    """Return the mean AUC over labels on training items; unknown entries count as no where no entry is a known no.

    Returns NaN where no label has both sides.
    """
    rows = _sample(labels, max_items)
    if not len(rows):
        return math.nan
    criterion = "auc" if labels.counts()[1].any() else "auc-unknown-as-no"
    return model_choice.score(criterion, predict(rows), labels[rows])
