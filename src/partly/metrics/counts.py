"""Precision, recall and F1 of each label, and of all known entries together, at a threshold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import scored
from partly.labels.matrix import Matrix
from partly.labels.scored import KnownScores
from partly.metrics.validation import Floats, Weights
from partly.model_choice.missingness import Missingness


def label_table(
    scores: KnownScores, z: Matrix, thresholds: Floats, weights: Weights | None = None
) -> dict[str, npt.NDArray[Any]]:
    ap = np.empty(z.shape[1])
    yes, no, predicted, hits = np.zeros((4, z.shape[1]), np.int64)
    ratio = np.ones(z.shape[1]) if weights is None else weights[1] / weights[0]
    for j, (s_yes, s_no) in enumerate(scored.iter_yes_no(scores, z)):
        ap[j] = scored.average_precision(s_yes, s_no, ratio[j])
        yes[j], no[j] = len(s_yes), len(s_no)
        hits[j] = np.count_nonzero(s_yes >= thresholds[j])
        predicted[j] = hits[j] + np.count_nonzero(s_no >= thresholds[j])
    precision, recall, f1 = precision_recall_f1(*weighted(hits, predicted, yes, weights))
    one_sided = (no == 0) & (yes < z.shape[0])
    precision, f1 = (np.where(one_sided, np.nan, values) for values in (precision, f1))
    ratios = {"AP": ap, "precision": precision, "recall": recall, "F1": f1}
    return ratios | {"yes": yes, "no": no, "predicted": predicted, "hits": hits}


def weighted(hits: Any, predicted: Any, yes: Any, weights: Weights | None) -> tuple[Any, Any, Any]:
    """Return counts of known entries, or with weights of yes and no, of the entries that they stand for, [L] each."""
    if weights is None:
        return hits, predicted, yes
    return weights[0] * hits, weights[0] * hits + weights[1] * (predicted - hits), weights[0] * yes


def pooled(
    table: dict[str, npt.NDArray[Any]], items: int, weights: Weights | None, missing: Missingness | None = None
) -> tuple[float, float, float]:
    """Return precision, recall and F1 of all known entries together; NaN if undefined or withheld."""
    counts = weighted(table["hits"], table["predicted"], table["yes"], weights)
    precision, recall, f1 = map(float, precision_recall_f1(*(count.sum() for count in counts)))
    if missing is not None and missing.withheld:
        return math.nan, math.nan, math.nan
    if not table["no"].any() and table["yes"].sum() < items * len(table["yes"]):
        return math.nan, recall, math.nan
    return precision, recall, f1


def precision_recall_f1(hits: Any, predicted: Any, yes: Any) -> tuple[Floats, Floats, Floats]:
    """NaN where no yes is known; precision 0 where there is one and nothing is predicted."""

    def ratio(above: Any, below: Any) -> Floats:
        return np.where(yes > 0, above / np.maximum(below, 1), np.nan)

    return ratio(hits, predicted), ratio(hits, yes), ratio(2 * hits, predicted + yes)
