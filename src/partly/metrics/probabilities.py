"""Log loss, Brier score and expected calibration error (ECE) of probabilities of known entries.

- log loss = mean of -log p for yes and -log(1 - p) for no; p is clipped to [eps, 1 - eps], eps
  being the machine epsilon of its data type.
- Brier = mean of (p - y)^2.
- ECE = sum over bins of |sum of (y - p)| / number of entries. Bins hold equal numbers of entries (adaptive); equal
  probabilities share a bin. ECE is biased upwards where bins hold few entries.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from partly.labels.scored import Scores
from partly.metrics.validation import Floats

BINS = 15


def log_losses(p: Scores, y: npt.NDArray[np.bool_]) -> Floats:
    """Return the log loss of each entry."""
    eps = float(np.finfo(p.dtype).eps) if p.dtype.kind == "f" else 1e-15
    clipped = np.clip(p.astype(np.float64), eps, 1 - eps)
    return np.asarray(-np.log(np.where(y, clipped, 1 - clipped)))


def brier_losses(p: Scores, y: npt.NDArray[np.bool_]) -> Floats:
    """Return the squared error of each entry."""
    return np.asarray((p.astype(np.float64) - y) ** 2)


def calibration_errors(p: Scores, y: npt.NDArray[np.bool_], bins: int = BINS) -> Floats:
    """Return the contribution of each entry to the ECE: the mean over entries is the ECE."""
    if not len(p):
        return np.zeros(0)
    bins = min(bins, len(p))
    first_of_bins = len(p) * np.arange(1, bins) // bins
    edges = np.sort(p)[first_of_bins]
    bin_index = np.searchsorted(edges, p, side="right")
    residual: Floats = y - p.astype(np.float64)
    signs = np.sign(np.bincount(bin_index, residual, minlength=bins))
    return np.asarray(signs[bin_index] * residual)
