"""Exact match and precision at rank k of each item."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from partly.labels import scored
from partly.labels.matrix import Matrix, Ternary, blocks
from partly.labels.scored import KnownScores, is_sparse
from partly.metrics.validation import Floats

RANKS = (1, 3, 5)


def item_table(scores: KnownScores, z: Matrix, thresholds: Floats) -> Floats:
    """Return exact match and precision at RANKS of each item, [N, 4]; NaN if no entry is known."""
    table = np.full((z.shape[0], 1 + len(RANKS)), np.nan)
    for block in blocks(z.shape):
        s, known_z, cuts = scores[block], z[block], np.broadcast_to(thresholds, scores[block].shape)
        s, known_z, cuts = pack_known(s, known_z, thresholds) if sp.issparse(known_z) else (s, known_z, cuts)
        has_known = known_z.any(axis=1)
        if has_known.any():
            s, known_z, cuts = (
                (s, known_z, cuts) if has_known.all() else (s[has_known], known_z[has_known], cuts[has_known])
            )
            wrong = ((s >= cuts) != (known_z == 1)) & (known_z != 0)
            table[block][has_known] = np.column_stack([~wrong.any(axis=1), _precision_at_ranks(s, known_z)])
    return table


def pack_known(s: KnownScores, known_z: Matrix, thresholds: Floats) -> tuple[scored.Scores, Ternary, Floats]:
    """Pack the known entries of sparse labels: scores, z and thresholds [B, M]; M: most known per item."""
    known = np.diff(known_z.indptr)
    row = np.repeat(np.arange(len(known)), known)
    place = np.arange(known_z.nnz) - np.repeat(known_z.indptr[:-1], known)
    dense = np.zeros((len(known), known.max(initial=0)), np.int8)
    packed, cuts = np.zeros(dense.shape, s.dtype), np.zeros(dense.shape, thresholds.dtype)
    known_scores = s.data if is_sparse(s) else s[row, known_z.indices]
    dense[row, place], packed[row, place], cuts[row, place] = known_z.data, known_scores, thresholds[known_z.indices]
    return packed, dense, cuts


def _precision_at_ranks(s: scored.Scores, z: Ternary) -> Floats:
    """Precision at RANKS, [B, 3], of items that all have a known entry. s, z: [B, M]."""
    known, yes = z != 0, z == 1
    s = np.where(known, s.astype(np.result_type(s.dtype, np.float32), copy=False), -np.inf)
    deepest = min(max(RANKS), s.shape[1])
    top = np.sort(np.partition(s, -deepest, axis=1)[:, -deepest:], axis=1)
    result = np.empty((len(s), len(RANKS)))
    for column, k in enumerate(RANKS):
        depth = np.minimum(k, known.sum(axis=1))
        last = np.take_along_axis(top, deepest - depth[:, None], axis=1)  # the score at rank k
        above, level = s > last, s == last
        places_left = depth - above.sum(axis=1)  # for the entries that tie at rank k
        expected_yes = places_left * (level & yes).sum(axis=1) / (level & known).sum(axis=1)
        result[:, column] = ((above & yes).sum(axis=1) + expected_yes) / depth
    return result
