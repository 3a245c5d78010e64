"""The share of the log loss of the labels' shares that the scores explain, once they are calibrated anew.

Assumes: known entries are missing at random. How the items of a label are ordered and how clearly they part is what
a model is worth, not whether its scores are probabilities. Where no no is known, unknown entries are taken for no:
hidden yes then hide a part of what a model explains, of a good model more, so that close ones may change places.

Differs: from the plain log loss, in which a model loses because its scores are off by a scale, as those of forests,
neighbours and kernel machines are. Each label's scores are brought to mean 0 and deviation 1 over all items, then all
are multiplied by one number and each label gets a bias, as fits the judged entries best (`recalibrated`). All entries
count alike, so that a label weighs by how much there is to explain in it. Give logits rather than probabilities: a
monotone transformation of the scores changes the result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.choosing.recalibration import Entries, entries, fitted, moments, recalibrated, standardised
from partly.errors import DataError
from partly.labels import Labels

__all__ = ["criterion", "judged", "recalibrated", "standardised"]

Floats = npt.NDArray[np.floating[Any]]


def criterion(scores: Floats, labels: Labels) -> float:
    """1 - loss / loss of the shares: 0 is no better than these. NaN where all that is judged says the same."""
    fit = fitted(judged(scores, labels))
    return 1 - fit.loss / fit.alone if fit.alone else math.nan


def judged(scores: Floats, labels: Labels) -> Entries:
    """The known entries, z-scored over all items; all entries, unknown as no, where no no is known."""
    if not np.isfinite(scores).all():
        raise DataError("log-loss takes finite scores, and some are infinite: cut them off, or choose by auc.")
    rows, columns, said = labels.entries()
    items, width = labels.shape
    if said.all():
        targets = np.zeros((width, items), np.int8)
        targets[columns, rows] = 1
        return entries(standardised(scores.T), None, targets, np.full(width, items))
    order = np.argsort(columns, kind="stable")
    rows, columns = rows[order], columns[order]
    mean, factor = moments(scores.T)
    z = (scores[rows, columns] - mean[columns]) * factor[columns]
    return entries(z, None, said[order], np.bincount(columns, minlength=width))
