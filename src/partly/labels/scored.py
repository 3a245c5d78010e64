"""Scores of labeled entries: validation, the scores of each label's yes and no, average precision and AUC."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import DataError, listing
from partly.labels.align import SCORED, align_columns, has_index, match_by_id, select_table
from partly.labels.labels import Labels, as_labels
from partly.labels.matrix import Matrix, Ternary, blocks

Scores = npt.NDArray[Any]
KnownScores = Any  # Scores [N, L], or for sparse labels a CSR array of the scores of known entries
DIVERGED = "A network that diverged gives NaN: look at its loss and at its inputs."

# -------------------------------------------------------------------- validation


def check_scores(scores: Any, labels: Any, known_only: bool = False) -> tuple[KnownScores, Labels]:
    """Return scores as an array, and labels in the order of their rows and, where both have names, of their columns.

    A pandas table may have more items and labels than the labels; they are left out.

    known_only : only known entries matter, so blocks of rows and the result of `gather_known` are accepted.
    """
    indexed, labels = has_index(labels), as_labels(labels, "labels")
    scores = select_table(scores, labels, SCORED)
    labels = match_by_id(labels, scores, "labels", indexed)
    if has_index(scores) and hasattr(scores, "columns"):
        labels = align_columns(labels, tuple(map(str, scores.columns)), "labels", SCORED)
    if known_only and isinstance(scores, Iterator):
        scores = gather_known(enumerate_rows(scores), labels)
    scores = scores if known_only and is_sparse(scores) else as_array(scores)
    if scores.shape != labels.shape:
        raise DataError(
            f"Scores have the shape {scores.shape} and labels {labels.shape}; "
            "both must be items x labels, in the same order."
        )
    if is_sparse(scores) and not _in_places_of(scores, labels):
        raise DataError("Scores that are sparse must be of the known entries, of all of them and of no others.")
    refuse_where(np.isnan, scores, labels, "NaN", DIVERGED)
    return scores, labels


def is_sparse(scores: KnownScores) -> bool:
    """Return whether these are the scores of known entries only."""
    return bool(sp.issparse(scores))


def as_array(scores: Any) -> npt.NDArray[Any]:
    if hasattr(scores, "detach"):  # a tensor; NumPy has no bfloat16
        scores = scores.detach().cpu()
        scores = scores.float() if str(scores.dtype) == "torch.bfloat16" else scores
    array = np.asarray(scores)
    if array.dtype.kind not in "biuf":
        raise DataError(f"Scores must be real numbers; got dtype {array.dtype}.")
    return array


def _in_places_of(scores: KnownScores, labels: Labels) -> bool:
    z = labels.ternary()
    return labels.sparse and all(np.array_equal(getattr(scores, a), getattr(z, a)) for a in ("indptr", "indices"))


def refuse_where(
    wrong: Callable[[Scores], npt.NDArray[np.bool_]], scores: KnownScores, labels: Labels, what: str, remedy: str
) -> None:
    total, places = 0, list[str]()
    for block in blocks(labels.shape):
        part = scores[block]
        bad = wrong(part.data if is_sparse(part) else part)
        total += (count := int(np.count_nonzero(bad)))
        if count and len(places) < 5:
            places += [
                f"item {labels.id_at(i + block.start)}, label {labels.names[j]}: {part[i, j]:g}"
                for i, j in _places(part, bad)[:5].tolist()
            ]
    if total:
        raise DataError(f"{total} of {scores.size} scores are {what}" + listing(places, total) + f"\n{remedy}")


def _places(scores: KnownScores, bad: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return row and column [K, 2] of the bad scores; `bad` is a mask of the array, or of the stored values."""
    if not is_sparse(scores):
        return np.argwhere(bad)
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    return np.column_stack([rows[bad], scores.indices[bad]])


# -------------------------------------------------------------------- blocks of rows


def enumerate_rows(parts: Iterable[Any]) -> Iterator[tuple[slice, Any]]:
    """Yield consecutive blocks with the rows that they cover."""
    start = 0
    for part in parts:
        yield slice(start, start + len(part)), part
        start += len(part)


def gather_known(parts: Iterable[tuple[slice | npt.NDArray[np.int64], Any]], labels: Labels) -> KnownScores:
    """Collect scores from blocks (rows, scores [B, L]) that cover every row once.

    For sparse labels only the scores of known entries are kept, as a CSR array.
    """
    z, filled, every = labels.ternary(), 0, np.arange(len(labels))
    gathered: Any = np.empty(0, np.float32)
    for rows, part in parts:
        block, index = as_array(part), every[rows]
        if block.shape != (len(part), labels.shape[1]) or len(index) != len(block):
            raise DataError(
                f"A block of scores has the shape {block.shape} where {len(index)} of {len(labels)} items are left; "
                f"labels are {labels.shape}, and blocks must be of their items, in the same order."
            )
        if np.isnan(block).any():
            named = labels[index].with_ids(map(labels.id_at, index.tolist()))
            refuse_where(np.isnan, block, named, "NaN", DIVERGED)
        if not filled:
            exact = np.float32 if labels.sparse and block.dtype == np.float16 else block.dtype  # SciPy has no half
            gathered = np.empty(z.nnz if labels.sparse else labels.shape, exact)
        if labels.sparse:
            counts = z.indptr[index + 1] - z.indptr[index]
            row = np.repeat(np.arange(len(index)), counts)
            place = np.arange(len(row)) + np.repeat(z.indptr[index] - np.cumsum(counts) + counts, counts)
            gathered[place] = block[row, z.indices[place]]
        else:
            gathered[index] = block
        filled += len(block)
    if filled != len(labels):
        raise DataError(f"There are scores of {filled} items and labels of {len(labels)}.")
    if not labels.sparse:
        return gathered if filled else np.empty(labels.shape, np.float32)
    return sp.csr_array((gathered, z.indices, z.indptr), shape=z.shape)


# -------------------------------------------------------------------- one label at a time


def iter_yes_no(scores: KnownScores, z: Matrix) -> Iterator[tuple[Scores, Scores]]:
    """Yield for each label the scores of its known yes and of its known no."""
    pairs = _sparse_columns(scores, z) if sp.issparse(z) else _dense_columns(scores, z)
    for s, values in pairs:
        yield np.compress(values == 1, s), np.compress(values == -1, s)


def iter_known(scores: KnownScores, z: Matrix) -> Iterator[tuple[npt.NDArray[np.int64], Scores, Ternary]]:
    """Yield for each label the rows of its known entries, with their scores and values."""
    if sp.issparse(z):
        columns: Any = z.tocsc()  # type: ignore[attr-defined]
        for (start, stop), (s, values) in zip(pairwise(columns.indptr), _sparse_columns(scores, z), strict=True):
            yield columns.indices[start:stop], s, values
        return
    for s, values in _dense_columns(scores, z):
        rows = np.flatnonzero(values)
        yield rows, s[rows], values[rows]


def _dense_columns(scores: Scores, z: Ternary) -> Iterator[tuple[Scores, Ternary]]:
    for block in blocks(z.shape[::-1]):
        yield from zip(*(_transpose(m[:, block]) for m in (scores, z)), strict=True)


def _transpose(m: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy the transposed matrix in strips that fit the cache, which is twice as fast as NumPy."""
    result = np.empty(m.shape[::-1], m.dtype)
    for start in range(0, len(m), 256):
        result[:, start : start + 256] = m[start : start + 256].T
    return result


def _sparse_columns(scores: KnownScores, z: Matrix) -> Iterator[tuple[Scores, Ternary]]:
    z, stored = z.tocsc(), scores.tocsc().data if is_sparse(scores) else None  # both come in the same order
    for j, (start, stop) in enumerate(pairwise(z.indptr)):
        s = scores[z.indices[start:stop], j] if stored is None else stored[start:stop]
        yield s, z.data[start:stop]


def iter_yes_rest(scores: Scores, labels: Labels) -> Iterator[tuple[Scores, Scores]]:
    """Yield for each label the scores of its known yes and of all other items, unknown or no."""
    rows, columns, values = labels.entries()
    rows, columns = rows[values == 1], columns[values == 1]
    rows = rows[np.argsort(columns, kind="stable")]
    ends = np.cumsum(np.bincount(columns, minlength=labels.shape[1]))
    for block in blocks(labels.shape[::-1]):
        for j, s in enumerate(_transpose(scores[:, block]), block.start):
            yes = np.zeros(len(s), bool)
            yes[rows[ends[j - 1] if j else 0 : ends[j]]] = True
            yield s[yes], s[~yes]


def average_precision_against_rest(
    parts: Iterable[Any],
    yes: KnownScores,
    total: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]] = lambda n: n,
) -> npt.NDArray[np.float64]:
    """Return the AP of each label [L] with unknown entries counted as no, from blocks of scores.

    parts : blocks of rows of the scores.
    yes : scores of the known yes, a CSR array.
    total : adds up counts over processes that cover other rows.

    Precision at a yes is the number of yes that score at least as high, over that of all such items, so only a count
    for each yes is kept.
    """
    columns = yes.tocsc()
    spans = [slice(start, stop) for start, stop in pairwise(columns.indptr)]
    known = [np.sort(columns.data[span]) for span in spans]
    reached = np.zeros(columns.nnz + len(spans), np.int64)  # items by the number of yes whose score they reach
    counts = [reached[span.start + j : span.stop + j + 1] for j, span in enumerate(spans)]
    for part in parts:
        for j, s in enumerate(_transpose(part)):
            if len(known[j]):
                counts[j] += np.bincount(np.searchsorted(known[j], s, side="right"), minlength=len(counts[j]))
    reached[:] = total(reached)
    return np.array(
        [_precision_from_counts(s, count, len(yes.indptr) - 1) for s, count in zip(known, counts, strict=True)]
    )


def _precision_from_counts(yes: Scores, reached: npt.NDArray[np.int64], items: int) -> float:
    """Return the AP of one label from its sorted yes scores and the counts."""
    if len(yes) in (0, items):
        return math.nan
    first = np.searchsorted(yes, yes)  # first of equal scores
    claims = np.cumsum(reached[::-1])[::-1][first + 1]
    return float(np.mean((len(yes) - first) / claims))


def average_precision(yes: Scores, no: Scores, ratio: float = 1.0) -> float:
    """Return the average precision from the scores of yes and no; ratio: weight of a no relative to a yes."""
    if not len(yes) or not len(no):
        return math.nan
    dtype = np.result_type(yes.dtype, np.float32)  # half precision sorts slowly
    yes, no = (np.sort(part.astype(dtype, copy=False)) for part in (yes, no))
    hits = np.arange(len(yes), 0, -1)  # yes entries at or above each yes entry
    if (yes[1:] == yes[:-1]).any():  # ties
        hits = len(yes) - np.searchsorted(yes, yes)
    false_alarms = len(no) - np.searchsorted(no, yes)
    return float(np.mean(hits / (hits + ratio * false_alarms)))


def auc(yes: Scores, no: Scores) -> float:
    """Return the share of (yes, no) pairs in which the yes scores higher, ties counted as half; NaN without pairs."""
    if not len(yes) or not len(no):
        return math.nan
    dtype = np.result_type(yes.dtype, no.dtype, np.float32)
    yes, rest = (np.sort(part.astype(dtype, copy=False)) for part in (yes, no))  # sorted ones are found faster
    below, above = (np.searchsorted(rest, yes, side=side) for side in ("left", "right"))
    return float((below + above).sum() / 2 / (len(yes) * len(no)))


def mean(values: npt.NDArray[np.float64]) -> float:
    """Return the mean of the defined values, NaN if there are none; exactly rounded, so that order does not matter."""
    defined = values[~np.isnan(values)]
    return math.fsum(defined.tolist()) / len(defined) if len(defined) else math.nan
