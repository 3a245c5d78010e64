"""One pass over the scores of a matrix, for estimates of all entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import DataError
from partly.labels import Labels, scored
from partly.labels.scored import Scores
from partly.metrics import audits
from partly.metrics.entry_counts import EntryCounter
from partly.metrics.validation import Floats, Threshold, check_threshold
from partly.model_choice.missingness import GROUPS, EntrySums, Missingness

MAX_ENTRIES = 1 << 27  # above it, only counts and the scores of known entries are kept


class MatrixPass:
    """Counts, sums for the test of missingness, and the scores of all or of the known entries."""

    def __init__(
        self, parts: Iterable[tuple[Any, Any]], labels: Labels, threshold: Threshold, audit: Labels | None
    ) -> None:
        self.labels = labels
        self.whole = labels.shape[0] * labels.shape[1] <= MAX_ENTRIES
        thresholds = np.broadcast_to(np.asarray(threshold, np.float64), labels.shape[1:])
        self.counter, self.sums = EntryCounter(labels, thresholds), EntrySums(labels)
        blocks = self.sums.pass_through(self.counter.pass_through(_as_blocks(parts, thresholds)))
        gathered = labels
        if self.whole:
            gathered = Labels.from_ternary(np.zeros(labels.shape, np.int8))  # dense: all scores are gathered
        elif audit is not None:
            gathered = labels.with_entries(*audits.entries_of_audit(audit, labels))
        self.scores = scored.gather_known(blocks, gathered)
        if not self.whole or not labels.sparse:
            check_threshold(self.scores, gathered, thresholds)
        self.counts = self.counter.total()

    @property
    def missingness(self) -> Missingness:
        return self.sums.missingness

    def columns(self) -> Iterator[tuple[npt.NDArray[np.int64], Scores, npt.NDArray[np.int8]]]:
        """Yield for each label the groups of its items, their scores and entries; known entries only if not `whole`."""
        z = self.labels.ternary()
        if not self.whole:
            for rows, s, values in scored.iter_known(self.scores, z):
                yield rows % GROUPS, s, values
            return
        packed: Any = z.tocsc() if sp.issparse(z) else z  # type: ignore[attr-defined]
        group = np.arange(len(self.labels)) % GROUPS
        for j in range(z.shape[1]):
            values = packed[:, [j]].toarray()[:, 0] if sp.issparse(z) else packed[:, j]
            yield group, np.ascontiguousarray(self.scores[:, j]), values


def _as_blocks(parts: Iterable[tuple[Any, Any]], thresholds: Floats) -> Iterator[tuple[Any, Any]]:
    """Yield blocks as probabilities: logits through a sigmoid would need thresholds to match, so they are refused."""
    probabilities = bool(((thresholds > 0) & (thresholds < 1)).all())
    for rows, part in parts:
        block = scored.as_array(part)
        if probabilities and block.size and not (block.min() >= -1e-6 and block.max() <= 1 + 1e-6):
            raise DataError(
                f"Scores reach from {block.min():g} to {block.max():g}, and the threshold {thresholds[0]:g} takes "
                "probabilities. Give probabilities (the sigmoid of logits), or the threshold for logits: threshold=0."
            )
        yield rows, block
