"""Soft targets of unknown entries, from models that did not see them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from partly.solvers.calibration import calibrate
from partly.solvers.logistic import Features, Floats, principal_axes, regularization_path, sigmoid

KNOWN_SHARE = 0.5  # share of the known target if only positives are known

Rows = npt.NDArray[np.intp]


def combine_targets(known: Floats, targets: Floats, believed: Floats, only_yes: bool) -> Floats:
    """Return known targets, else estimates, [L, N]; with positives only, the mean of both."""
    known_share = np.float32(KNOWN_SHARE if only_yes else 1)
    return np.where(known > 0, known_share * targets + (1 - known_share) * believed, believed)


def estimate_targets(
    x: Features, weights: Floats, targets: Floats, rows: Rows, c: float, only_yes: bool, seed: int
) -> Floats:
    """Return probabilities of the entries of some items, [L, rows], from these items alone.

    With known negatives, unknown entries are not fitted, so one fit to the known ones suffices. If unknown entries
    count as negatives, each half of the items is scored by a fit to the other half.
    """
    weights, targets, x = weights[:, rows], targets[:, rows], x[rows]
    half = np.random.default_rng(seed).permutation(np.arange(len(rows)) % 2) if only_yes else np.zeros(len(rows))
    scores = np.empty(weights.shape, np.float32)
    for part in np.unique(half):
        scored = half == part
        fitted = (
            half != part if only_yes and not scored.all() else np.ones(len(rows), bool)
        )  # a single item cannot be split
        z = principal_axes(x[fitted])
        w, b = z.to_original(*next(regularization_path(z, weights[:, fitted], targets[:, fitted], [c])))
        scores[:, scored] = (x[scored] @ w.T).T + b[:, None]
    return sigmoid(calibrate(scores, weights, targets)(scores))
