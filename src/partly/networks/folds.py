"""The strength of a linear head, chosen for the data at hand: folds over the items, judged on what is held out.

One strength for all labels. The folds are solved as if they were further labels, which share the features. A held-out
entry is judged by its score without the fold's bias, plus the bias of all entries: the bias of a fold depends on how
many yes the fold took away, so that a held-out yes would lower the bias that judges it, and with few known yes the
constant model would seem best.

Where some no is known the criterion is the log loss of the held-out entries. Where only yes is known, and unknown
entries are taken for no, it is the mean AUC of yes against unknown: hidden yes shift the log loss, but if they are
hidden at random not the order of models by AUC.

This rule was picked among several on validation splits of 18 cells (VOC 2012, COCO, scene, yeast, corel5k, debtags,
delicious; 5 to 30 % known and one yes per item). On these same cells, which flatters it, mAP was on average 0.0006 and
at most 0.003 below the best of 15 strengths; with the log loss alone 0.0015 and 0.007, with mean AP 0.003 and 0.016.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.networks.logistic import BLOCK, Features, Floats, Turned, log_odds, path, turned

GRID = tuple(0.03 * 3.0**k for k in range(9))  # strengths C, over the total mean square of the features
WORSE = 2  # strengths in a row that must be worse before the path is left
FEW = 2000  # items: below, five folds, else three


def memory(items: int, labels: int, width: int) -> int:
    """Bytes that `solve` takes: the features twice, and for each entry and fold its weight, target, and what the solver
    has of it."""
    folds = 5 if items < FEW else 3
    entries = items * labels
    return 8 * items * width + 4 * entries * (5 * folds + 5) + 40 * min(entries * folds, BLOCK)


@dataclass(frozen=True)
class Solved:
    """A linear head with the strength that folds found best: w [L, D], b [L], and what it is worth held out."""

    w: Floats
    b: Floats
    strength: float
    loss: float  # the criterion, less is better
    held_out: Floats  # logits of every training entry by the fold that did not see it, [L, N]


def fold_of(items: int, seed: int) -> npt.NDArray[np.int64]:
    """The fold of each item, [N]."""
    folds = min(items, 5 if items < FEW else 3)
    return np.random.default_rng(seed).permutation(np.arange(items) % max(1, folds))


def solve(x: Features, weights: Floats, targets: Floats, fold: npt.NDArray[np.int64], only_yes: bool) -> Solved:
    """The best strength, then one fit to everything."""
    z = turned(x)
    strengths = [size / max(float(z.squares.sum()), 1e-12) for size in GRID]
    bias = log_odds(weights, targets)[:, None]
    best, held_out, behind = (np.inf, strengths[0]), np.zeros_like(weights) + bias, 0
    for strength, scores in zip(strengths, _held_out(z, weights, targets, strengths, fold), strict=True):
        loss = criterion(scores + bias, weights, targets, only_yes)
        behind = 0 if loss < best[0] else behind + 1
        if not behind:
            best, held_out = (loss, strength), scores + bias
        if behind == WORSE:
            break
    w, b = z.undone(*next(path(z, weights, targets, [best[1]])))
    return Solved(w, b, best[1], best[0], held_out)


def _held_out(
    z: Turned, weights: Floats, targets: Floats, strengths: list[float], fold: npt.NDArray[np.int64]
) -> Iterator[Floats]:
    """For each strength the scores of every entry, without a bias, by the fold that did not see it: [L, N]."""
    labels, folds = len(weights), int(fold.max()) + 1
    seen = np.stack([fold != k for k in range(folds)])
    each = np.concatenate([np.where(part, weights, np.float32(0)) for part in seen])
    for w, _ in path(z, each, np.tile(targets, (folds, 1)), strengths):
        scores = np.empty(weights.shape, np.float32)
        for k, part in enumerate(w.reshape(folds, labels, -1)):
            rows = np.flatnonzero(fold == k)
            scores[:, rows] = z.times(part, rows)
        yield scores


def criterion(scores: Floats, weights: Floats, targets: Floats, only_yes: bool) -> float:
    """What held-out logits [L, N] are worth, less is better: see above."""
    if not only_yes:
        losses = weights * (np.logaddexp(0, scores) - targets * scores)
        return float(losses.sum(dtype=np.float64) / max(float(weights.sum(dtype=np.float64)), 1e-12))
    aucs = [auc(s, t > 0.5) for s, t in zip(scores, targets, strict=True)]
    defined = [value for value in aucs if value == value]
    return 1.0 - float(np.mean(defined)) if defined else 0.5


def auc(scores: Floats, yes: npt.NDArray[np.bool_]) -> float:
    """The share of pairs of a yes and another entry in which the yes scores higher, of equal scores one half; NaN where
    there is no pair."""
    count, items = int(yes.sum()), len(scores)
    if count in (0, items):
        return float("nan")
    rest = np.sort(scores[~yes])
    below, above = (np.searchsorted(rest, scores[yes], side=side) for side in ("left", "right"))
    return float((below + above).sum() / 2 / (count * (items - count)))
