"""Affine calibration of scores, and the log loss of calibrated held-out scores.

Models have scores of different scales, and folds with few known positives have different biases. Models are therefore
compared by their log loss after recalibration (`model_choice.recalibration`). With positives only, unknown entries
count as negatives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partly.labels import Labels
from partly.model_choice.missingness import missingness
from partly.model_choice.recalibration import moments, recalibrate
from partly.solvers.logistic import Floats, log_odds

MAX_ENTRIES = 1 << 21  # maximum number of entries; of more, a random sample of items is used
SIGNIFICANCE_LEVEL = 0.001  # risk of reweighting entries that are missing at random
MIN_SLOPE = 0.05  # of z-scores, so that useless scores keep their order


@dataclass(frozen=True)
class AffineMaps:
    """One affine map per label from scores to logits, and the mean log loss of these logits."""

    slope: Floats  # [L]
    bias: Floats  # [L]
    loss: float = float("nan")

    def __call__(self, scores: Floats) -> Floats:
        """Return logits [L, N]."""
        logits: Floats = self.slope[:, None] * scores + self.bias[:, None]
        return logits


def z_scores(scores: Floats) -> AffineMaps:
    """Return the maps that standardize the scores of each label over its items."""
    mean, factor = moments(scores)
    most = 1e3 * factor[factor > 0].min(initial=np.inf)
    factor = np.where(factor > most, 0.0, factor)  # so little variation is noise, as for labels without known entries
    return AffineMaps(factor.astype(np.float32), (-mean * factor).astype(np.float32))


def calibrate(scores: Floats, weights: Floats, targets: Floats) -> AffineMaps:
    """Fit one slope for all z-scored scores [L, N], and a bias per label, to weighted entries."""
    line = z_scores(scores)
    if scores.size > MAX_ENTRIES:
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.permutation(scores.shape[1])[: max(1, MAX_ENTRIES // len(scores))])
        scores, weights, targets = scores[:, chosen], weights[:, chosen], targets[:, chosen]
    loss, scale, biases = recalibrate(line(scores), weights, targets)
    slope = np.float32(max(scale, MIN_SLOPE))
    yes = np.einsum("ij,ij->i", weights, targets, dtype=np.float64)
    both = (yes > 1e-6) & (weights.sum(axis=1, dtype=np.float64) - yes > 1e-6)
    # A label with one known value, or none, gets its share of positives as a constant.
    bias = np.where(both, slope * line.bias + biases.astype(np.float32), log_odds(weights, targets))
    return AffineMaps(np.where(both, slope * line.slope, np.float32(0)), bias, loss)


def reweight_by_missingness(held_out: Floats, weights: Floats, targets: Floats) -> Floats:
    """Return weights [L, N] of known entries that represent all entries, if positives and negatives are known at
    different rates. The weights are unchanged if entries are missing at random, or if that cannot be decided."""
    z = np.where(weights > 0, np.where(targets > 0.5, 1, -1), 0).astype(np.int8)
    estimate = missingness(held_out.T, Labels.from_ternary(z.T), risk=SIGNIFICANCE_LEVEL)
    if estimate.weights is None:
        return weights
    yes, no = (part.astype(np.float32)[:, None] for part in estimate.weights)
    return np.asarray(weights * np.where(targets > 0.5, yes, no), np.float32)
