"""Propensities of labels: the chance that a yes is known, by the frequency of its label.

    p = 1 / (1 + C * exp(-A * log(n + B))),  C = (log N - 1) * (B + 1)^A

n is the number of training items with the label, N the number of training items. (H. Jain, Y. Prabhu, M. Varma. Extreme
Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label Applications. KDD 2016.)
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from partly.errors import SettingError
from partly.metrics.validation import Floats

A, B = 0.55, 1.5
CONSTANTS = {"wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6), "other": (A, B)}  # of the paper, per data set


def propensities(counts: npt.ArrayLike, items: int, a: float = A, b: float = B) -> Floats:
    """Estimate the chance that a yes is known, for each label.

    Parameters
    ----------
    counts : array of [L]
        Number of training items with each label.
    items : int
        Number of training items.
    a, b : float
        Constants of the model: 0.5 and 0.4 for Wikipedia, 0.6 and 2.6 for Amazon, 0.55 and 1.5 elsewhere.

    Returns
    -------
    array, [L]
        Propensities in (0, 1].

    Examples
    --------
    >>> import partly
    >>> partly.metrics.propensities([1, 100], items=10_000).round(2)
    array([0.11, 0.48])
    """
    counts = np.asarray(counts, np.float64)
    if (counts < 0).any() or items < 1 or b <= 0:
        raise SettingError(f"propensities: counts and items must not be negative, and b must be positive; got b = {b}.")
    c = max(math.log(items) - 1, 0) * (b + 1) ** a
    return np.asarray(1 / (1 + c * np.exp(-a * np.log(counts + b))))
