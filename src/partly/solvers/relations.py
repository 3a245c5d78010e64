"""Relations between the labels of an item.

`relate` fits a logistic regression per label on the held-out scores of all labels, with the label's own logit as an
offset. Half of the result is applied, since scores of labels learned from the same few entries are correlated too much.

`compete` lowers the logits of an item by a share of the logarithm of its expected number of labels.

Both are applied only as far as the held-out loss falls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partly.solvers.calibration import calibrate
from partly.solvers.folds import Fold
from partly.solvers.logistic import Floats, PrincipalAxes, principal_axes, regularization_path, sigmoid

C_VALUES = tuple(1e-5 * 4.0**k for k in range(8))
DIRECTIONS = 200  # maximum principal axes of the scores
APPLIED = 0.5
STOP_FACTOR = 1.01  # times the smallest loss, at which the search stops
PARTS = (0.0, 0.25, 0.5, 0.75, 1.0)
MIN_LABELS_PER_ITEM = 1e-3  # lower bound of the expected number of labels


@dataclass(frozen=True)
class Relation:
    """Logits gain (logits - mean) @ matrix; held_out [L, N] are the result."""

    matrix: Floats  # [L, L], from scores to logits
    mean: Floats  # [L]
    held_out: Floats
    loss: float
    c: float  # C; 0 if nothing helps


def relate(logits: Floats, weights: Floats, targets: Floats, fold: Fold) -> Relation:
    """Fit the relation to calibrated held-out logits [L, N]."""
    labels = len(logits)
    mean, spread = logits.mean(axis=1), logits.std(axis=1) + np.float32(1e-6)
    x = _directions(((logits - mean[:, None]) / spread[:, None]).T)
    least, c, best = calibrate(logits, weights, targets).loss, 0.0, logits
    if labels > 1:
        least, c, best = _choose_c(x, logits, weights, targets, fold, least)
    matrix = np.zeros((labels, labels), np.float32)
    if c:
        w, _ = x.to_original(*next(regularization_path(x, weights, targets, [c], logits)))
        matrix = np.float32(APPLIED) * (w / spread).T
    return Relation(matrix, mean, best, least, c)


def _directions(z: Floats) -> PrincipalAxes:
    x = principal_axes(np.ascontiguousarray(z))
    if not x.axes:
        return x
    *before, last = x.axes
    axes = (*before, last[:, :DIRECTIONS])
    return replace(x, x=x.x[:, :DIRECTIONS], axes=axes, mean=x.mean[:DIRECTIONS], squares=x.squares[:DIRECTIONS])


def _choose_c(
    x: PrincipalAxes, logits: Floats, weights: Floats, targets: Floats, fold: Fold, least: float
) -> tuple[float, float, Floats]:
    """Return the smallest held-out loss, its C, and the logits."""
    folds = int(fold.max()) + 1
    fold_weights = np.concatenate([np.where(fold != k, weights, np.float32(0)) for k in range(folds)])
    twice = (np.tile(part, (folds, 1)) for part in (targets, logits))
    c, best = 0.0, logits
    target, offset = twice
    for tried, (w, _) in zip(C_VALUES, regularization_path(x, fold_weights, target, C_VALUES, offset), strict=True):
        related = logits.copy()
        for k, part in enumerate(w.reshape(folds, len(logits), -1)):
            rows = np.flatnonzero(fold == k)
            related[:, rows] += np.float32(APPLIED) * x.times(part, rows)
        loss = calibrate(related, weights, targets).loss
        if loss < least:
            least, c, best = loss, tried, related
        elif loss > STOP_FACTOR * least:
            break
    return least, c, best


def compete(logits: Floats, weights: Floats, targets: Floats) -> tuple[float, Floats]:
    """Return the chosen share and the resulting logits [L, N] from calibrated held-out ones."""
    crowd = np.log(sigmoid(logits).sum(axis=0) + np.float32(MIN_LABELS_PER_ITEM))
    tried = [(part, logits - np.float32(part) * crowd) for part in PARTS]
    return min(tried, key=lambda one: calibrate(one[1], weights, targets).loss)
