"""Scores beside labels: what is checked at their door, the scores of each label's yes and no, and how well these are
told apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.errors import DataError, listing
from partly.labels.matrix import Matrix, Ternary, blocks
from partly.labels.pairing import has_index, matched
from partly.labels.three_valued import Labels, as_labels

Scores = npt.NDArray[Any]

# -------------------------------------------------------------------- the door


def checked(scores: Any, labels: Any) -> tuple[Scores, Labels]:
    labels = matched(as_labels(labels, "labels"), scores, "labels", has_index(labels))
    if hasattr(scores, "detach"):  # a tensor; NumPy has no bfloat16
        scores = scores.detach().cpu()
        scores = scores.float() if str(scores.dtype) == "torch.bfloat16" else scores
    scores = np.asarray(scores)
    if scores.shape != labels.shape:
        raise DataError(
            f"Scores have the shape {scores.shape} and labels {labels.shape}; "
            "both must be items x labels, in the same order."
        )
    if scores.dtype.kind not in "biuf":
        raise DataError(f"Scores must be real numbers; got dtype {scores.dtype}.")
    remedy = "A network that diverged gives NaN: look at its loss and at its inputs."
    refuse_where(np.isnan, scores, labels, "NaN", remedy)
    return scores, labels


def refuse_where(
    wrong: Callable[[Scores], npt.NDArray[np.bool_]], scores: Scores, labels: Labels, what: str, remedy: str
) -> None:
    total, places = 0, list[str]()
    for block in blocks(labels.shape):
        bad = wrong(scores[block])
        total += int(np.count_nonzero(bad))
        if total and len(places) < 5:
            found = ((i + block.start, j) for i, j in np.argwhere(bad)[:5])
            places += [f"item {labels.ids[i]}, label {labels.names[j]}: {scores[i, j]:g}" for i, j in found]
    if total:
        raise DataError(f"{total} of {scores.size} scores are {what}" + listing(places, total) + f"\n{remedy}")


# -------------------------------------------------------------------- one label at a time


def columns(scores: Scores, z: Matrix) -> Iterator[tuple[Scores, Scores]]:
    """Label by label: the scores of its known yes, and those of its known no."""
    pairs = _sparse_columns(scores, z) if sp.issparse(z) else _dense_columns(scores, z)
    for s, said in pairs:
        yield np.compress(said == 1, s), np.compress(said == -1, s)


def _dense_columns(scores: Scores, z: Ternary) -> Iterator[tuple[Scores, Ternary]]:
    for block in blocks(z.shape[::-1]):
        yield from zip(*(_transposed(m[:, block]) for m in (scores, z)), strict=True)


def _transposed(m: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Columns as rows of memory. By strips that fit a cache: NumPy copies the whole at half the speed."""
    result = np.empty(m.shape[::-1], m.dtype)
    for start in range(0, len(m), 256):
        result[:, start : start + 256] = m[start : start + 256].T
    return result


def _sparse_columns(scores: Scores, z: Matrix) -> Iterator[tuple[Scores, Ternary]]:
    z = z.tocsc()
    for j, (start, stop) in enumerate(pairwise(z.indptr)):
        yield scores[z.indices[start:stop], j], z.data[start:stop]


def against_rest(scores: Scores, labels: Labels) -> Iterator[tuple[Scores, Scores]]:
    """Label by label: the scores of its known yes, and those of all other items, unknown or no."""
    rows, columns, said = labels.entries()
    rows, columns = rows[said == 1], columns[said == 1]
    rows = rows[np.argsort(columns, kind="stable")]
    ends = np.cumsum(np.bincount(columns, minlength=labels.shape[1]))
    for block in blocks(labels.shape[::-1]):
        for j, s in enumerate(_transposed(scores[:, block]), block.start):
            yes = np.zeros(len(s), bool)
            yes[rows[ends[j - 1] if j else 0 : ends[j]]] = True
            yield s[yes], s[~yes]


def average_precision(yes: Scores, no: Scores) -> float:
    if not len(yes) or not len(no):
        return math.nan
    dtype = np.result_type(yes.dtype, np.float32)  # half precision sorts slowly
    yes, no = (np.sort(part.astype(dtype, copy=False)) for part in (yes, no))
    hits = np.arange(len(yes), 0, -1)  # yes entries at or above each yes entry
    if (yes[1:] == yes[:-1]).any():  # only then is it worth a search
        hits = len(yes) - np.searchsorted(yes, yes)
    false_alarms = len(no) - np.searchsorted(no, yes)
    return float(np.mean(hits / (hits + false_alarms)))


def auc(yes: Scores, no: Scores) -> float:
    """The share of pairs of a yes and a no in which the yes scores higher, of equal scores one half; NaN of no pair."""
    if not len(yes) or not len(no):
        return math.nan
    rest = np.sort(no.astype(np.result_type(no.dtype, np.float32), copy=False))
    below, above = (np.searchsorted(rest, yes, side=side) for side in ("left", "right"))
    return float((below + above).sum() / 2 / (len(yes) * len(no)))


def mean(values: npt.NDArray[np.float64]) -> float:
    """Over what is defined, NaN of nothing. Exactly rounded, so that no order and no batching changes a bit."""
    defined = values[~np.isnan(values)]
    return math.fsum(defined.tolist()) / len(defined) if len(defined) else math.nan
