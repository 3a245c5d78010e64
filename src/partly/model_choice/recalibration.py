"""Scores calibrated anew: one scale for all labels and a bias for each, as fit the judged entries best.

So that models can be compared by what they know, whatever the scale of their scores: those of forests and of kernel
machines are off by much. Scores of a label are first brought to mean 0 and deviation 1 over its items (`standardised`).

The loss is convex in the scale and the biases together, and its curvature is an arrow: a bias meets the scale and no
other bias. So Newton's method takes one look at the entries for each of its steps, of which there are six to ten.
Everything is label-major, as in `solving.logistic`: scores, weights and targets are [L, N].
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

STEPS = 60  # of Newton's method, at most
CLOSE = 1e-7  # of the loss: what a step may still gain where we stop
LARGEST = 20.0  # scale: where all that is judged can be told apart, the loss would fall for ever
FARTHEST = 3.0  # that a bias goes in one step
CHUNK = 1 << 15  # entries worked on at a time, so that they stay in the cache


def recalibrated(scores: Floats, weights: Floats, targets: Floats) -> tuple[float, float, Doubles]:
    """(loss, scale, biases [L]) for which sigmoid(scale * scores + biases) fits best; all arguments are [L, N].

    scores: z-scored (`standardised`), or else one scale for all makes no sense. weights: 0 leaves an entry out, and
    then nothing is computed of it. targets: from 0 to 1. The loss is the mean cross-entropy, by weight. The scale is
    not below 0: scores that point the wrong way are worth nothing. One entry more of the share that all labels have
    together, which the loss does not count, keeps the bias of every label finite.
    """
    use = weights != 0
    fit = fitted(entries(scores[use], weights[use], targets[use], use.sum(axis=1)))
    return fit.loss, fit.scale, fit.biases


def standardised(scores: Floats) -> Singles:
    """Each label's scores with mean 0 and deviation 1 over its items, [L, N]. Scores that are all equal become 0."""
    scores = np.asarray(scores, np.result_type(scores.dtype, np.float32))
    mean, factor = moments(scores)
    result = np.ascontiguousarray(scores - mean[:, None].astype(scores.dtype), np.float32)
    result *= factor[:, None].astype(np.float32)
    return result


def moments(scores: Floats) -> tuple[Doubles, Doubles]:
    """Mean of each label's scores, and 1 / their deviation (0 where that is 0): two [L]."""
    if not scores.shape[1]:
        return np.zeros(len(scores)), np.zeros(len(scores))
    mean, deviation = scores.mean(axis=1, dtype=np.float64), scores.std(axis=1, dtype=np.float64)
    varied = deviation > 1e-12 * np.abs(mean)
    return mean, np.where(varied, 1 / np.where(varied, deviation, 1), 0)


@dataclass(frozen=True)
class Entries:
    """Judged entries, label after label: z-scores [K], weights [K] (None: 1 each), and sums over each label's, [L].
    Targets enter the loss by sums alone."""

    scores: Singles
    weights: Singles | None
    counts: Counts
    total: Doubles  # of weights
    yes: Doubles  # of weights times targets
    lean: float  # weights times targets times scores, of all labels


def entries(scores: Floats, weights: Floats | None, targets: npt.NDArray[Any], counts: Counts) -> Entries:
    """Entries of label after label, of which the first has counts[0], ...; arguments of any shape with this order."""
    scores, targets = np.ravel(scores), np.ravel(targets)
    one = None if weights is None or (weights == 1).all() else np.ravel(weights).astype(np.float32)
    wanted = targets if one is None else one * targets
    total = counts.astype(np.float64) if one is None else _sums(one, counts)
    some = np.flatnonzero(wanted)
    lean = float(np.dot(wanted[some].astype(np.float64), scores[some]))
    return Entries(np.asarray(scores, np.float32), one, counts, total, _sums(wanted, counts), lean)


def _sums(values: npt.NDArray[Any], counts: Counts) -> Doubles:
    """Over each label's entries, [K] -> [L]."""
    result, some = np.zeros(len(counts)), counts > 0  # reduceat takes the next label's first entry for nothing
    if some.any():
        result[some] = np.add.reduceat(values, (np.cumsum(counts) - counts)[some], dtype=np.float64)
    return result


@dataclass(frozen=True)
class Fit:
    """The best scale and biases [L], their loss, and the loss of the labels' shares alone (0: all says the same)."""

    loss: float
    scale: float
    biases: Doubles
    alone: float


def fitted(judged: Entries) -> Fit:
    """Newton's method from the labels' shares, a step halved as long as it does not help."""
    weight, yes = float(judged.total.sum()), float(judged.yes.sum())
    pooled = (yes + 0.5) / (weight + 1)
    share = (judged.yes + pooled) / (judged.total + 1)
    here = _Look(judged, pooled, 0.0, np.log(share / (1 - share)))
    alone, size = here.loss, 1.0
    for _ in range(STEPS if 0 < yes < weight else 0):
        scale, biases, gain = here.next(size)
        if gain <= CLOSE * alone:
            break
        there = _Look(judged, pooled, scale, biases)
        better = there.objective < here.objective
        here, size = (there, 1.0) if better else (here, size / 2)
    per = max(weight, 1e-12)
    return Fit(here.loss / per, here.scale, here.biases, alone / per if 0 < yes < weight else 0.0)


class _Look:
    """The loss at a scale and biases [L], and its slopes and curvature there."""

    def __init__(self, judged: Entries, pooled: float, scale: float, biases: Doubles) -> None:
        self.scale, self.biases = scale, biases
        self.to_bias, self.bends, self.crosses = (np.empty(len(biases)) for _ in range(3))
        losses, self.to_scale, self.bend = 0.0, -judged.lean, 0.0
        for labels, part in _chunks(judged.counts):
            s, counts = judged.scores[part], judged.counts[labels]
            logits = np.float32(scale) * s + np.repeat(biases[labels].astype(np.float32), counts)
            small = np.exp(-np.abs(logits))
            inverse = 1 / (1 + small)
            p, bend = np.where(logits >= 0, inverse, small * inverse), small * inverse * inverse
            loss = np.maximum(logits, 0) - np.log(inverse)  # softplus
            if judged.weights is not None:
                w = judged.weights[part]
                p, bend, loss = p * w, bend * w, loss * w
            cross = bend * s
            losses += float(loss.sum(dtype=np.float64))
            self.to_scale += float(np.dot(p, s))
            self.bend += float(np.dot(cross, s))
            self.to_bias[labels], self.bends[labels], self.crosses[labels] = (
                _sums(sums, counts) for sums in (p, bend, cross)
            )
        self.loss = losses - float(biases @ judged.yes) - scale * judged.lean
        likely = 1 / (1 + np.exp(-biases))  # the one entry more
        self.objective = self.loss + float((np.logaddexp(0, biases) - pooled * biases).sum())
        self.to_bias += likely - judged.yes - pooled
        self.bends += likely * (1 - likely) + 1e-9

    def next(self, size: float) -> tuple[float, Doubles, float]:
        """Scale and biases after a part of a Newton step, and what the whole step promises to gain."""
        slope = self.to_scale - float((self.crosses * self.to_bias / self.bends).sum())
        bend = self.bend - float((self.crosses**2 / self.bends).sum())
        scale = min(max(self.scale - slope / max(bend, 1e-9), 0), LARGEST)
        by = scale - self.scale
        moves = np.clip(-(self.to_bias + self.crosses * by) / self.bends, -FARTHEST, FARTHEST)
        gain = -(self.to_scale * by + float(self.to_bias @ moves)) / 2
        return self.scale + size * by, self.biases + size * moves, gain


def _chunks(counts: Counts) -> Iterator[tuple[slice, slice]]:
    """Runs of labels, and of their entries, about CHUNK entries long."""
    ends = np.cumsum(counts)
    first = start = 0
    while first < len(counts):
        last = max(first + 1, int(np.searchsorted(ends, start + CHUNK, side="right")))
        yield slice(first, last), slice(start, int(ends[last - 1]))
        first, start = last, int(ends[last - 1])
