"""Scores of a teacher for all entries, [N, L], read in blocks of items: no matrix of this size is held in memory.

Scores of a teacher with `caches_scores` are stored in the cache folder, block by block. After a failure or an
interruption only the missing blocks are computed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from partly.atomic_io import sha256
from partly.items import Items
from partly.teachers.cache import load_or_compute
from partly.teachers.contract import Block, Rows, Teacher, Vocabulary, ids_of, items_per_block, names_of
from partly.teachers.large_arrays import MAX_IN_MEMORY

ITEMS_PER_CACHED_BLOCK = 256

ScoreMatrix = Any  # an array [N, L], or `LazyScores`: both have a shape, a length, and rows


class LazyScores:
    """Scores that are computed for the rows that are asked for."""

    def __init__(self, teacher: Teacher, items: Items, labels: Vocabulary) -> None:
        self.shape = (len(items), len(names_of(labels)))
        self.read = teacher.reader(items, labels)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Rows) -> Block:
        return _without_infinities(self.read(rows))


def open_scores(teacher: Teacher, items: Items, labels: Vocabulary) -> ScoreMatrix:
    """Return the scores [N, L] of a teacher: in memory if they are few, from the cache, or computed on request."""
    shape = (len(items), len(names_of(labels)))
    if teacher.caches_scores and shape[0] and _has_identity(teacher):
        return _load_or_score(teacher, items, labels, shape)
    if shape[0] * shape[1] <= MAX_IN_MEMORY:
        return teacher.scores(items, labels)
    return LazyScores(teacher, items, labels)


def _has_identity(teacher: Teacher) -> bool:
    return type(teacher).identity is not Teacher.identity


def _load_or_score(
    teacher: Teacher, items: Items, labels: Vocabulary, shape: tuple[int, int]
) -> npt.NDArray[np.float32]:
    ids = ids_of(labels)
    key = {
        "scores": teacher.identity(),
        "items": items.digest(),
        "names": list(names_of(labels)),
        "ids": None if ids is None else sha256("\0".join(ids).encode()),
    }
    read = teacher.reader(items, labels)
    block = min(ITEMS_PER_CACHED_BLOCK, items_per_block(shape[1]))
    return load_or_compute(
        key, shape, lambda rows: _without_infinities(read(rows)), block, f"Scores of {teacher.describe()}"
    )


def _without_infinities(block: Block) -> Block:
    return np.where(np.isfinite(block), block, np.float32(np.nan))
