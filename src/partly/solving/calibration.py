"""What held-out scores are worth, whatever their scale: the log loss that is left when they are calibrated.

Scores of different learners have different scales, and folds with few known yes have different biases. So the scores of
each label are z-scored over all items, one common slope and a bias for each label are fitted to the entries that count,
and the log loss that remains is compared. Where only yes is known, and unknown entries are taken for no, the same loss
is used: it is that of telling known yes from the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.solving.logistic import Floats, sigmoid

MOST = 1 << 21  # entries that are looked at: of more, those of some items at random
RATIO = 2.0**0.5  # between the slopes that are tried
SLOPES = 8  # tried in one direction
FIRST, NEXT = 8, 4  # Newton steps for the biases: at the first slope, and at each that starts where another ended


@dataclass(frozen=True)
class Calibrated:
    """For each label the line that makes logits of its scores, and the log loss of these logits, per entry."""

    loss: float
    slope: Floats  # [L]
    bias: Floats  # [L]

    def __call__(self, scores: Floats) -> Floats:
        """Logits [L, N]."""
        logits: Floats = self.slope[:, None] * scores + self.bias[:, None]
        return logits


@dataclass(frozen=True)
class _Entries:
    """Entries that count, label after label: a flat list in which each label has its part."""

    scores: Floats  # z-scored
    weights: Floats
    targets: Floats
    counts: npt.NDArray[np.intp]  # of entries [L]
    pooled: float  # share of yes

    def sums(self, values: Floats) -> npt.NDArray[np.float64]:
        """Of each label [L]."""
        found = np.zeros(len(self.counts))
        some = np.flatnonzero(self.counts)
        if len(some):
            starts = np.cumsum(self.counts[some]) - self.counts[some]
            found[some] = np.add.reduceat(values, starts, dtype=np.float64)
        return found


def calibrate(scores: Floats, weights: Floats, targets: Floats) -> Calibrated:
    """The best common slope for z-scored scores [L, N], and the biases that go with it, on weighted entries.

    The loss has one minimum in the slope: slopes are tried upwards from 1 while it falls, or else downwards. One more
    entry for each label, of the share of yes that all labels have, keeps biases finite.
    """
    mean, spread = scores.mean(axis=1), scores.std(axis=1) + np.float32(1e-6)
    entries = _gather(scores, weights, targets, mean, spread)
    yes, all_ = entries.sums(entries.weights * entries.targets), entries.sums(entries.weights)
    share = (yes + entries.pooled) / (all_ + 1.0)
    best = (*_biases(entries, 1.0, np.log(share / (1 - share)), FIRST), 1.0)
    for ratio in (RATIO, 1 / RATIO):
        before = best
        for _ in range(SLOPES):
            slope = best[2] * ratio
            found = (*_biases(entries, slope, best[1], NEXT), slope)
            if found[0] >= best[0]:
                break
            best = found
        if best is not before:
            break
    loss, biases, slope = best
    line = (slope / spread).astype(np.float32)
    return Calibrated(loss, line, (biases - line * mean).astype(np.float32))


def _gather(scores: Floats, weights: Floats, targets: Floats, mean: Floats, spread: Floats) -> _Entries:
    labels, items = scores.shape
    if scores.size > MOST:
        chosen = np.random.default_rng(0).permutation(items)[: max(1, MOST // labels)]
        chosen.sort()
        scores, weights, targets = scores[:, chosen], weights[:, chosen], targets[:, chosen]
    at = np.nonzero(weights)
    weight, target = weights[at], targets[at]
    values = (scores[at] - mean[at[0]]) / spread[at[0]]
    pooled = (float(weight @ target) + 0.5) / (float(weight.sum(dtype=np.float64)) + 1.0)
    return _Entries(values, weight, target, np.bincount(at[0], minlength=labels), pooled)


def _biases(entries: _Entries, slope: float, biases: npt.NDArray[np.float64], steps: int) -> tuple[float, Floats]:
    """Newton for the bias of each label; the loss that is left, per entry, and the biases."""
    counts, weights = entries.counts, entries.weights
    scaled = np.float32(slope) * entries.scores
    for step in range(steps + 1):
        logits = scaled + np.repeat(biases, counts).astype(np.float32)
        if step == steps:
            break
        p = sigmoid(logits)
        toward = entries.sums(weights * (p - entries.targets)) + sigmoid(biases) - entries.pooled
        bend = entries.sums(weights * p * (1 - p)) + entries.pooled * (1 - entries.pooled) + 1e-6
        biases = biases - np.clip(toward / bend, -1, 1)
    losses = weights * (np.logaddexp(np.float32(0), logits) - entries.targets * logits)
    return float(losses.sum(dtype=np.float64) / max(weights.sum(dtype=np.float64), 1e-12)), biases
