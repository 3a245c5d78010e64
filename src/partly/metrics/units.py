"""Number of independent units behind each metric, for the exact intervals of metrics at 0 or 1.

A recall of 1 on three known yes is three successes, however many items there are. The units of a label are its known
yes for recall and F1, its predicted entries for precision, and the rarer of yes and no for AP and AUROC. A mean over
labels with weights w and units n has 1 / sum(w^2 / n) units, which gives it the variance of a mean of proportions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.metrics.validation import Floats


def units_of_labels(table: Mapping[str, npt.NDArray[Any]]) -> dict[str, Floats]:
    """Return the units of each label [L], by column."""
    yes, no, predicted = (table[name].astype(np.float64) for name in ("yes", "no", "predicted"))
    rarer = np.minimum(yes, no)
    return {
        "AP": rarer,
        "AUROC": rarer,
        "precision": np.where(predicted > 0, predicted, yes),  # 0 by definition where nothing is predicted
        "recall": yes,
        "F1": yes,
    }


def units_of_mean(units: Floats, values: Floats, weights: Floats | None = None) -> float:
    """Return the units of the mean of the defined values of labels."""
    defined = ~np.isnan(values) & (units > 0)
    shares = np.ones(len(units)) if weights is None else np.asarray(weights, np.float64)
    shares, units = shares[defined], units[defined]
    return float(shares.sum() ** 2 / (shares**2 / units).sum()) if shares.any() else 0.0
