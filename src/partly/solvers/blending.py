"""Blend several models, weighted by their held-out loss.

The gain of a model is the relative reduction of the prior's held-out loss. Models of one kind, such as logistic
regressions on different features, are weighted by a softmax of their gains. Scores are z-scored per label before they
are added, so that scales do not matter; the weighted sum is calibrated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.solvers.calibration import calibrate, z_scores
from partly.solvers.logistic import Floats

TEMPERATURE = 0.05  # of the softmax, relative to the best gain
MIN_GAIN = 1e-3  # lower bound of the best gain
NEGLIGIBLE = 0.02  # weight of a model that is not worth its time
CLEAR_GAIN = 0.02  # difference of gains that is more than chance


@dataclass(frozen=True)
class Blend:
    """Blended models. The logits of a label are the sum over models of slope x score, plus a bias."""

    slopes: Floats  # [M, L]
    bias: Floats  # [L]
    held_out: Floats  # logits [L, N]
    loss: float  # of them


def softmax_weights(relative_gains: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the weight of each model, [M]; they sum to 1."""
    best = max([*relative_gains, MIN_GAIN])
    weights = np.exp((np.asarray(relative_gains) - max(relative_gains)) / (TEMPERATURE * best))
    shared: npt.NDArray[np.float64] = weights / weights.sum()
    return shared


def without_negligible(counts: Sequence[float]) -> list[float]:
    """Return the weights without those below `NEGLIGIBLE`; they sum to 1 again."""
    significant = [count if count >= NEGLIGIBLE else 0.0 for count in counts]
    return [count / sum(significant) for count in significant]


def blend(held_out: Sequence[Floats], counts: Sequence[float], weights: Floats, targets: Floats) -> Blend:
    """Blend models with held-out scores [L, N] by the given weights."""
    maps = [z_scores(scores) for scores in held_out]
    together = sum(np.float32(count) * line(scores) for count, line, scores in zip(counts, maps, held_out, strict=True))
    last = calibrate(np.asarray(together, np.float32), weights, targets)
    slopes = np.stack([np.float32(count) * line.slope * last.slope for count, line in zip(counts, maps, strict=True)])
    bias = last.bias + last.slope * sum(np.float32(count) * line.bias for count, line in zip(counts, maps, strict=True))
    return Blend(slopes, bias.astype(np.float32), last(np.asarray(together, np.float32)), last.loss)


def blend_or_first(
    held_out: Sequence[Floats], counts: Sequence[float], losses: Sequence[float], weights: Floats, targets: Floats
) -> tuple[Blend, list[float]]:
    """Return the blend and its weights; only the first model where the blend is clearly worse."""
    blended = blend(held_out, counts, weights, targets)
    first, together = relative_gains([losses[0], blended.loss], weights, targets)
    if together >= first - CLEAR_GAIN:
        return blended, list(counts)
    alone = [1.0, *(0.0 for _ in counts[1:])]
    return blend(held_out, alone, weights, targets), alone


def relative_gains(losses: Sequence[float], weights: Floats, targets: Floats) -> list[float]:
    """Return the relative reduction of the prior's loss by each loss."""
    prior = max(calibrate(np.zeros_like(weights), weights, targets).loss, 1e-12)
    return [1 - loss / prior for loss in losses]
