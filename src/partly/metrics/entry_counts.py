"""Counts of known and unknown entries by label and group of items, from which metrics of the whole matrix follow.

Scores may come in blocks of rows, so memory does not grow with items x labels. The groups serve a delete-a-group
jackknife; they are those of `model_choice.missingness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import Labels
from partly.labels.matrix import Ternary
from partly.labels.scored import Scores
from partly.metrics.top_ranks import RANKS
from partly.metrics.validation import Floats
from partly.model_choice.missingness import GROUPS


@dataclass(eq=False)
class EntryCounts:
    """Sums over items, [L] each; `top_yes` and `top_unknown` are [len(RANKS), L]."""

    items: float
    yes: Floats
    no: Floats
    unknown: Floats
    hits: Floats  # known yes that are predicted
    false_alarms: Floats  # known no that are predicted
    predicted_unknown: Floats
    score: Floats  # sum of the scores of unknown entries
    predicted_score: Floats  # sum of the scores of predicted unknown entries
    top_yes: Floats  # known yes among the k highest scores of all entries of an item
    top_unknown: Floats

    @property
    def predicted(self) -> Floats:
        """Number of predicted entries of each label, known or not."""
        return self.hits + self.false_alarms + self.predicted_unknown


class EntryCounter:
    """Adds up counts of each group of items, block by block."""

    def __init__(self, labels: Labels, thresholds: Floats) -> None:
        count = labels.shape[1]
        self.labels, self.thresholds = labels, thresholds
        self.items = np.zeros(GROUPS)
        per_label = [field.name for field in fields(EntryCounts)[1:-2]]  # all but `items` and the top ranks
        self.sums = {name: np.zeros((GROUPS, count)) for name in per_label}
        self.tops = {name: np.zeros((GROUPS, len(RANKS), count)) for name in ("top_yes", "top_unknown")}

    def pass_through(self, parts: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the blocks unchanged, each with its rows, and count their entries."""
        positions = np.arange(len(self.labels))
        for rows, block in parts:
            self.add(positions[rows], block)
            yield rows, block

    def add(self, index: npt.NDArray[np.int64], block: Scores) -> None:
        """Add scores [B, L] of the items at these positions."""
        z = self.labels.rows(index)
        predicted, yes, no, unknown = block >= self.thresholds, z == 1, z == -1, z == 0
        scores = np.where(unknown, block, 0).astype(np.float64)
        terms: dict[str, npt.NDArray[Any]] = {
            "yes": yes,
            "no": no,
            "unknown": unknown,
            "hits": yes & predicted,
            "false_alarms": no & predicted,
            "predicted_unknown": unknown & predicted,
            "score": scores,
            "predicted_score": np.where(predicted, scores, 0),
        }
        group = index % GROUPS
        for g in np.unique(group):
            for name, values in terms.items():
                self.sums[name][g] += values[group == g].sum(axis=0)
        self.items += np.bincount(group, minlength=GROUPS)
        self._add_top(group, block, z)

    def _add_top(self, group: npt.NDArray[np.int64], block: Scores, z: Ternary) -> None:
        """Add the k highest scores of each item; scores that tie at rank k share the remaining ranks."""
        depth = min(max(RANKS), block.shape[1])
        if not depth:
            return
        highest = np.sort(np.partition(block, -depth, axis=1)[:, -depth:], axis=1)[:, ::-1]
        for place, k in enumerate(RANKS):
            kth_score = highest[:, min(k, depth) - 1, None]
            rows, columns = np.nonzero(block >= kth_score)
            above = (block > kth_score).sum(axis=1)
            tied = np.bincount(rows, minlength=len(block)) - above
            share = (min(k, depth) - above) / np.maximum(tied, 1)
            weight = np.where(block[rows, columns] > kth_score[rows, 0], 1.0, share[rows])
            for name, value in (("top_yes", 1), ("top_unknown", 0)):
                chosen = z[rows, columns] == value
                np.add.at(self.tops[name], (group[rows[chosen]], place, columns[chosen]), weight[chosen])

    def total(self, without: int | None = None) -> EntryCounts:
        """Return the counts of all items, or of all but one group."""
        groups = np.arange(GROUPS) != (-1 if without is None else without)
        sums = {name: values[groups].sum(axis=0) for name, values in (self.sums | self.tops).items()}
        return EntryCounts(float(self.items[groups].sum()), **sums)
