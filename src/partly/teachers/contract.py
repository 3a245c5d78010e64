"""The contract of a teacher: scores of entries from a source that is not trained on these labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from partly.errors import DataError
from partly.items import Items
from partly.labels import Labels
from partly.labels.names import Names

Block = npt.NDArray[np.float32]
Rows = slice | npt.NDArray[np.int64]  # positions of items
Vocabulary = Labels | Sequence[str]  # labels with the ids of the items, or only the names of the labels
ITEMS_AT_A_TIME, ENTRIES_AT_A_TIME = 4096, 1 << 22


class Teacher:
    """A source of scores. A subclass defines `score_blocks` and `identity`.

    Scores are any real numbers, larger for a likelier yes; NaN means no opinion. They need no common scale: `stacking`
    weighs them on known entries.
    """

    caches_scores: ClassVar[bool] = (
        True  # in the cache folder, by `identity`, so that an interrupted computation resumes
    )

    def score_blocks(self, items: Items, labels: Vocabulary) -> Iterator[Block]:
        """Yield the scores of blocks of items, [B, L] each, in the order of the items."""
        raise NotImplementedError(f"{type(self).__name__} defines no score_blocks.")

    def identity(self) -> dict[str, Any]:
        """Return all that the scores depend on besides items and labels, for JSON: the key of cached scores.

        If the code of a teacher changes its scores, its identity must change, too, for example by a version number.
        """
        raise NotImplementedError(f"{type(self).__name__} has no identity.")

    def describe(self) -> str:
        """Return a short name for tables and reports."""
        return type(self).__name__

    def reader(self, items: Items, labels: Vocabulary) -> Callable[[Rows], Block]:
        """Return a function that scores the items at some positions."""

        def read(rows: Rows) -> Block:
            return self.scores(items[rows], labels[rows] if isinstance(labels, Labels) else labels)

        return read

    def scores(self, items: Items, labels: Vocabulary) -> Block:
        """Return the scores of all items, [N, L]."""
        names = names_of(labels)
        scores = np.empty((len(items), len(names)), np.float32)
        start = 0
        for block in self.score_blocks(items, labels):
            if block.shape[1:] != (len(names),) or start + len(block) > len(items):
                raise DataError(
                    f"{self.describe()}: a block of scores is {list(block.shape)}; it should have a column for each of "
                    f"the {len(names)} labels and no more rows than the {len(items)} items."
                )
            scores[start : start + len(block)] = block
            start += len(block)
        if start < len(items):
            raise DataError(f"{self.describe()}: scores of {start} of {len(items)} items.")
        scores[~np.isfinite(scores)] = np.nan
        return scores


def items_per_block(labels: int) -> int:
    """Return the number of items whose scores are computed at a time."""
    return max(1, min(ITEMS_AT_A_TIME, ENTRIES_AT_A_TIME // max(1, labels)))


def vocabulary(names: Sequence[str], ids: Sequence[str]) -> Labels:
    """Return labels of these names of which nothing is known, for items with these ids."""
    nothing = np.empty(0, np.int64)
    return Labels.from_codes(nothing, nothing, nothing, tuple(names), ids)


def names_of(labels: Vocabulary) -> Names:
    """Return the names of the labels."""
    return labels.names if isinstance(labels, Labels) else tuple(labels)


def ids_of(labels: Vocabulary) -> Names | None:
    """Return the ids of the items, where they have some."""
    return labels.given_ids if isinstance(labels, Labels) else None
