"""Recalibrate scores: fit one scale for all labels and a bias for each label to known entries.

Models can then be compared whatever the scale of their scores, which differs widely for forests and kernel machines.
Scores of a label are first standardized over its items (`standardize`).

The loss is convex, and its Hessian has arrow structure, because a bias interacts with the scale only. Newton's method
therefore needs one pass over the entries per step, and six to ten steps. All arrays are label-major: [L, N].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

MAX_STEPS = 60
TOLERANCE = 1e-7  # relative gain of a step, below which the iteration stops
MAX_SCALE = 20.0  # the scale of separable entries would grow without bound
MAX_BIAS_STEP = 3.0
ENTRIES_PER_CHUNK = 1 << 15  # fits into the cache
MANY_ITEMS, BLOCK_ITEMS = 5000, 1 << 13  # from so many items on, moments are those of blocks of items


def recalibrate(scores: Floats, weights: Floats, targets: Floats) -> tuple[float, float, Doubles]:
    """Fit sigmoid(scale * scores + biases) to targets, and return (loss, scale, biases [L]). Arguments are [L, N].

    scores: standardized. weights: 0 leaves an entry out. targets: from 0 to 1. The loss is the weighted mean
    cross-entropy. The scale is not negative. One extra entry per label with the share of all labels together, not
    counted in the loss, keeps every bias finite.
    """
    use = weights != 0
    fit = fit_scale(collect_entries(scores[use], weights[use], targets[use], use.sum(axis=1)))
    return fit.loss, fit.scale, fit.biases


def standardize(scores: Floats) -> Singles:
    """Scale each label's scores to mean 0 and deviation 1 over its items, [L, N]; constant scores become 0."""
    scores = np.asarray(scores, np.result_type(scores.dtype, np.float32))
    mean, factor = moments(scores)
    result = np.ascontiguousarray(scores - mean[:, None].astype(scores.dtype), np.float32)
    result *= factor[:, None].astype(np.float32)
    return result


def moments(scores: Floats) -> tuple[Doubles, Doubles]:
    """Mean of each label's scores, and 1 / their deviation (0 where that is 0): two [L]."""
    if not scores.shape[1]:
        return np.zeros(len(scores)), np.zeros(len(scores))
    if scores.shape[1] < MANY_ITEMS:
        mean, deviation = scores.mean(axis=1, dtype=np.float64), scores.std(axis=1, dtype=np.float64)
    else:
        mean, deviation = _moments_in_blocks(scores)
    varied = deviation > 1e-12 * np.abs(mean)
    return mean, np.where(varied, 1 / np.where(varied, deviation, 1), 0)


def _moments_in_blocks(scores: Floats) -> tuple[Doubles, Doubles]:
    """Mean and deviation of each label's scores, without a copy of all scores in float64."""
    items = scores.shape[1]
    blocks = [scores[:, start : start + BLOCK_ITEMS] for start in range(0, items, BLOCK_ITEMS)]
    mean = np.sum([block.sum(axis=1, dtype=np.float64) for block in blocks], axis=0) / items
    squares = np.zeros(len(scores))
    for block in blocks:
        distance = block - mean.astype(scores.dtype)[:, None]
        squares += [row @ row for row in distance]
    return mean, np.sqrt(squares / items)


@dataclass(frozen=True)
class Entries:
    """Entries in label order: standardized scores [K], weights [K] (None: 1), and sums over each label [L].

    Targets enter the loss through these sums only.
    """

    scores: Singles
    weights: Singles | None
    counts: Counts
    total: Doubles  # of weights
    yes: Doubles  # of weights times targets
    lean: float  # weights times targets times scores, of all labels


def collect_entries(scores: Floats, weights: Floats | None, targets: npt.NDArray[Any], counts: Counts) -> Entries:
    """Collect entries in label order; counts: entries of each label. Arguments may have any shape."""
    scores, targets = np.ravel(scores), np.ravel(targets)
    flat_weights = None if weights is None or (weights == 1).all() else np.ravel(weights).astype(np.float32)
    weighted = targets if flat_weights is None else flat_weights * targets
    total = counts.astype(np.float64) if flat_weights is None else _sum_by_label(flat_weights, counts)
    nonzero = np.flatnonzero(weighted)
    lean = float(np.dot(weighted[nonzero].astype(np.float64), scores[nonzero]))
    return Entries(np.asarray(scores, np.float32), flat_weights, counts, total, _sum_by_label(weighted, counts), lean)


def _sum_by_label(values: npt.NDArray[Any], counts: Counts) -> Doubles:
    """Sum over the entries of each label, [K] -> [L]."""
    result, filled = np.zeros(len(counts)), counts > 0  # reduceat would misread empty labels
    if filled.any():
        result[filled] = np.add.reduceat(values, (np.cumsum(counts) - counts)[filled], dtype=np.float64)
    return result


@dataclass(frozen=True)
class Fit:
    """Best scale and biases [L], their loss, and the loss of constant predictions (0: all targets are equal)."""

    loss: float
    scale: float
    biases: Doubles
    alone: float


def fit_scale(entries: Entries) -> Fit:
    """Fit by Newton's method with step halving, starting from the labels' shares."""
    weight, yes = float(entries.total.sum()), float(entries.yes.sum())
    pooled = (yes + 0.5) / (weight + 1)
    share = (entries.yes + pooled) / (entries.total + 1)
    current = _Evaluation(entries, pooled, 0.0, np.log(share / (1 - share)))
    alone, size = current.loss, 1.0
    for _ in range(MAX_STEPS if 0 < yes < weight else 0):
        scale, biases, gain = current.take_step(size)
        if gain <= TOLERANCE * alone:
            break
        candidate = _Evaluation(entries, pooled, scale, biases)
        better = candidate.objective < current.objective
        current, size = (candidate, 1.0) if better else (current, size / 2)
    per = max(weight, 1e-12)
    return Fit(current.loss / per, current.scale, current.biases, alone / per if 0 < yes < weight else 0.0)


class _Evaluation:
    """Loss, gradient and curvature at a scale and biases [L]."""

    def __init__(self, entries: Entries, pooled: float, scale: float, biases: Doubles) -> None:
        self.scale, self.biases = scale, biases
        self.to_bias, self.bends, self.crosses = (np.empty(len(biases)) for _ in range(3))
        losses, self.to_scale, self.bend = 0.0, -entries.lean, 0.0
        for labels, part in _chunks(entries.counts):
            s, counts = entries.scores[part], entries.counts[labels]
            logits = np.float32(scale) * s + np.repeat(biases[labels].astype(np.float32), counts)
            small = np.exp(-np.abs(logits))
            inverse = 1 / (1 + small)
            p, bend = np.where(logits >= 0, inverse, small * inverse), small * inverse * inverse
            loss = np.maximum(logits, 0) - np.log(inverse)  # softplus
            if entries.weights is not None:
                w = entries.weights[part]
                p, bend, loss = p * w, bend * w, loss * w
            cross = bend * s
            losses += float(loss.sum(dtype=np.float64))
            self.to_scale += float(np.dot(p, s))
            self.bend += float(np.dot(cross, s))
            self.to_bias[labels], self.bends[labels], self.crosses[labels] = (
                _sum_by_label(sums, counts) for sums in (p, bend, cross)
            )
        self.loss = losses - float(biases @ entries.yes) - scale * entries.lean
        likely = 1 / (1 + np.exp(-biases))  # the extra entry
        self.objective = self.loss + float((np.logaddexp(0, biases) - pooled * biases).sum())
        self.to_bias += likely - entries.yes - pooled
        self.bends += likely * (1 - likely) + 1e-9

    def take_step(self, size: float) -> tuple[float, Doubles, float]:
        """Return scale and biases after a part of a Newton step, and the predicted gain of the whole step."""
        slope = self.to_scale - float((self.crosses * self.to_bias / self.bends).sum())
        bend = self.bend - float((self.crosses**2 / self.bends).sum())
        scale = min(max(self.scale - slope / max(bend, 1e-9), 0), MAX_SCALE)
        by = scale - self.scale
        moves = np.clip(-(self.to_bias + self.crosses * by) / self.bends, -MAX_BIAS_STEP, MAX_BIAS_STEP)
        gain = -(self.to_scale * by + float(self.to_bias @ moves)) / 2
        return self.scale + size * by, self.biases + size * moves, gain


def _chunks(counts: Counts) -> Iterator[tuple[slice, slice]]:
    """Yield ranges of labels and of their entries, of about ENTRIES_PER_CHUNK entries."""
    ends = np.cumsum(counts)
    first = start = 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(ends, start + ENTRIES_PER_CHUNK, side="right")))
        yield slice(first, last), slice(start, int(ends[last - 1]))
        first, start = last, int(ends[last - 1])
