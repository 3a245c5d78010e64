"""Standardize a teacher's scores: per label over the training items, then per item over its labels.

Scores differ in scale between labels and between items: a high score means little for an item with high scores of all
labels. After both steps, a score measures how much this label stands out for this item (as in SPARC,
Miller et al., CVPR 2025). The second step needs at least `MIN_LABELS` labels. No opinion becomes 0, the mean.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
MIN_LABELS = 3
MIN_SCALE = 1e-6


@dataclass(frozen=True)
class Standardization:
    """Mean and scale of the scores of each label, [L]."""

    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]

    def per_label(self, scores: Floats) -> Floats:
        """Return scores [B, L] at mean 0 and scale 1 of each label; 0 without an opinion."""
        standardized = ((scores - self.mean) / self.scale).astype(np.float32)
        return np.where(np.isfinite(standardized), standardized, np.float32(0))

    def per_item(self, scores: Floats) -> Floats:
        """Return scores [B, L] that are also at mean 0 and scale 1 over the labels of each item."""
        by_label, opinion = self.per_label(scores), np.isfinite(scores) & np.isfinite(self.scale)
        count = opinion.sum(axis=1, keepdims=True)
        if scores.shape[1] < MIN_LABELS:
            return by_label
        share = np.maximum(count, 1)
        mean = by_label.sum(axis=1, keepdims=True) / share
        deviation = np.where(opinion, by_label - mean, 0)
        scale = np.sqrt(np.square(deviation).sum(axis=1, keepdims=True) / share)
        standardized = deviation / np.maximum(scale, MIN_SCALE)
        return np.where(count >= MIN_LABELS, standardized, by_label).astype(np.float32)


def measure(blocks: Iterable[Floats]) -> Standardization:
    """Measure mean and scale of each label in one pass over the training scores; NaN is skipped."""
    count = total = squares = shift = None
    for block in blocks:
        known = np.isfinite(block)
        values = np.where(known, block, 0).astype(np.float64)
        if count is None or total is None or squares is None or shift is None:
            count, total, squares = (np.zeros(block.shape[1]) for _ in range(3))
            shift = values.sum(axis=0) / np.maximum(known.sum(axis=0), 1)  # near the mean, against cancellation
        centered = np.where(known, values - shift, 0)
        count += known.sum(axis=0)
        total += centered.sum(axis=0)
        squares += np.square(centered).sum(axis=0)
    if count is None or total is None or squares is None or shift is None:
        return Standardization(np.zeros(0), np.ones(0))
    offset = total / np.maximum(count, 1)
    variance = np.maximum(squares / np.maximum(count, 1) - np.square(offset), 0)
    # A label that the teacher scores alike everywhere, or never, has no scale: it is left at 0.
    scale = np.where((count > 1) & (np.sqrt(variance) > MIN_SCALE), np.sqrt(variance), np.inf)
    return Standardization(shift + offset, scale)
