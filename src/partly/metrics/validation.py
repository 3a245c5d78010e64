"""Checks of scores, labels, thresholds and missingness that all metrics share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError, SettingError
from partly.labels import Labels, as_labels, scored
from partly.labels.scored import KnownScores
from partly.model_choice.missingness import EntrySums, Missingness, missingness

Floats = npt.NDArray[np.float64]
Threshold = float | npt.NDArray[np.floating[Any]]  # for all labels, or for each of them [L]
Weights = tuple[Floats, Floats]  # how many entries a known yes and a known no of each label stand for, [L] each


def check_missingness(scores: Any, labels: Any) -> tuple[KnownScores, Labels, Missingness]:
    """Check scores and labels, and test how entries are missing."""
    if scored.is_sparse(scores):
        raise DataError("missing='auto' needs the scores of all entries; these are of known entries alone.")
    if not isinstance(scores, Iterator):
        scores, labels = scored.check_scores(scores, labels)
        return scores, labels, missingness(scores, labels)
    labels = as_labels(labels, "labels")
    sums = EntrySums(labels)
    return scored.gather_known(sums.pass_through(scored.enumerate_rows(scores)), labels), labels, sums.missingness


def check_threshold(scores: Any, labels: Any, threshold: Threshold) -> tuple[KnownScores, Labels, Floats]:
    """Check scores, labels and threshold; return thresholds [L]."""
    scores, labels = scored.check_scores(scores, labels, known_only=True)
    if np.shape(threshold) not in ((), labels.shape[1:]) or not np.isfinite(threshold).all():
        raise SettingError(f"threshold must be a finite number, or one for each label; got {threshold!r}.")
    exact = scores.dtype if scores.dtype.kind == "f" else np.dtype(np.float64)  # 0.7 is 0.7, also in float32
    thresholds = np.broadcast_to(np.asarray(threshold, exact), labels.shape[1:])
    if ((thresholds > 0) & (thresholds < 1)).all() and len(thresholds):  # a float may round a little past 1
        remedy = "Give probabilities (the sigmoid of logits), or the threshold for logits: threshold=0."
        outside = f"outside 0..1, where the threshold {thresholds[0]:g} takes probabilities"
        scored.refuse_where(lambda s: (s < -1e-6) | (s > 1 + 1e-6), scores, labels, outside, remedy)
    return scores, labels, thresholds
