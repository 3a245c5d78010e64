"""AffineMaps that make logits of scores, and what held-out scores are worth, whatever their scale.

Scores of different learners have different scales, and folds with few known yes have different biases. So they are
compared by the log loss that is left when they have been calibrated anew (`choosing.recalibration`). Where only yes is
known, and unknown entries are taken for no, the same loss is used: it is that of telling known yes from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partly.labels import Labels
from partly.model_choice.missingness import missingness
from partly.model_choice.recalibration import moments, recalibrated
from partly.solvers.logistic import Floats, log_odds

MAX_ENTRIES = 1 << 21  # entries that are looked at: of more, those of some items at random
RISK = 0.001  # of weighting entries that are missing at random
MIN_SLOPE = 0.05  # slope of z-scores: where they seem to be worth nothing, their order is kept


@dataclass(frozen=True)
class AffineMaps:
    """For each label the line that makes logits of its scores, and the log loss of these logits, per entry."""

    slope: Floats  # [L]
    bias: Floats  # [L]
    loss: float = float("nan")

    def __call__(self, scores: Floats) -> Floats:
        """Logits [L, N]."""
        logits: Floats = self.slope[:, None] * scores + self.bias[:, None]
        return logits


def z_scores(scores: Floats) -> AffineMaps:
    """The lines that bring the scores of each label to mean 0 and scale 1 over its items."""
    mean, factor = moments(scores)
    most = 1e3 * factor[factor > 0].min(initial=np.inf)
    factor = np.where(factor > most, 0.0, factor)  # what varies as little as that is noise: a label nobody spoke of
    return AffineMaps(factor.astype(np.float32), (-mean * factor).astype(np.float32))


def calibrate(scores: Floats, weights: Floats, targets: Floats) -> AffineMaps:
    """The best common slope for z-scored scores [L, N], and the biases that go with it, on weighted entries."""
    line = z_scores(scores)
    if scores.size > MAX_ENTRIES:
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.permutation(scores.shape[1])[: max(1, MAX_ENTRIES // len(scores))])
        scores, weights, targets = scores[:, chosen], weights[:, chosen], targets[:, chosen]
    loss, scale, biases = recalibrated(line(scores), weights, targets)
    slope = np.float32(max(scale, MIN_SLOPE))
    yes = np.einsum("ij,ij->i", weights, targets, dtype=np.float64)
    both = (yes > 1e-6) & (weights.sum(axis=1, dtype=np.float64) - yes > 1e-6)
    # Of a label whose entries all say the same, or that has none, scores say nothing: it is called by its share of yes.
    bias = np.where(both, slope * line.bias + biases.astype(np.float32), log_odds(weights, targets))
    return AffineMaps(np.where(both, slope * line.slope, np.float32(0)), bias, loss)


def reweight_by_missingness(held_out: Floats, weights: Floats, targets: Floats) -> Floats:
    """Weights [L, N] of known entries that stand for all entries, where yes and no are known at different rates.

    The same weights where entries are missing at random, or how they are missing cannot be told. held_out: logits.
    """
    z = np.where(weights > 0, np.where(targets > 0.5, 1, -1), 0).astype(np.int8)
    estimate = missingness(held_out.T, Labels.from_ternary(z.T), risk=RISK)
    if estimate.weights is None:
        return weights
    yes, no = (part.astype(np.float32)[:, None] for part in estimate.weights)
    return np.asarray(weights * np.where(targets > 0.5, yes, no), np.float32)
