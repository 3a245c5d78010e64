"""Items that are rows of a SciPy CSR matrix, such as TF-IDF features. Only a batch of them is ever dense."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from partly.errors import DataError, listing
from partly.items.arrays import REFUSED, WAY_OUT, Sums, unusable, usable
from partly.items.contract import Index, Kind, Positions, Statistics, narrowed, shared_scale
from partly.labels.names import Names

BLOCK = 1 << 22  # stored numbers worked on at a time


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of a canonical CSR matrix of float32, all or some."""

    matrix: Any
    names: Names | None = None
    rows: Positions | None = None  # None: all
    kind: Kind = "features"

    def __len__(self) -> int:
        return int(self.matrix.shape[0]) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.matrix.shape[1]),)

    def __getitem__(self, index: Index) -> SparseRows:
        return SparseRows(self.matrix, self.names, narrowed(self.rows, index, len(self)))

    def take(self, index: Tensor | slice) -> Tensor:
        return torch.from_numpy(self._part(index if isinstance(index, slice) else index.numpy()).toarray())

    def _part(self, index: Index) -> Any:
        return self.matrix[index if self.rows is None else self.rows[index]]

    # ---------------------------------------------------------------- one pass over all of them

    @property
    def statistics(self) -> Statistics:
        """A scale and no mean, so that what is 0 stays 0."""
        return self._survey[0]

    def digest(self) -> str:
        return self._survey[1]

    @cached_property
    def _survey(self) -> tuple[Statistics, str]:
        # One for each array, so that where the blocks are cut makes no difference.
        shas = [hashlib.sha256(f"csr{(len(self), *self.shape)}".encode()), hashlib.sha256(), hashlib.sha256()]
        sums, width, whole_numbers = Sums(), self.shape[0], True
        per_item = self.matrix.nnz / max(1, self.matrix.shape[0])
        step = max(1, int(BLOCK / max(1.0, per_item)))
        for start in range(0, len(self), step):
            part = self._part(slice(start, start + step))
            parts = (np.diff(part.indptr).astype("<i8"), part.indices.astype("<i4"), part.data)
            for sha, values in zip(shas, parts, strict=True):
                sha.update(np.ascontiguousarray(values).data)
            whole_numbers = whole_numbers and not (part.data % 1).any()
            data, at, count = part.data.astype(np.float64), part.indices, part.shape[0]
            mean = np.bincount(at, data, width) / count
            zeros = count - np.bincount(at, minlength=width)
            squares = np.bincount(at, (data - mean[at]) ** 2, width) + zeros * mean**2
            sums.merge(count, torch.from_numpy(mean), torch.from_numpy(squares))
        found = sums.statistics()
        # What hardly varies about a mean that is not taken off says nothing: its scale is 0, as that of a constant.
        scale = torch.where(found.scale > 1e-6 * found.mean.abs(), found.scale, 0.0)
        whole = hashlib.sha256("".join(sha.hexdigest() for sha in shas).encode())
        return _shared(Statistics(torch.zeros_like(scale), scale), whole_numbers), whole.hexdigest()


def _shared(found: Statistics, whole_numbers: bool) -> Statistics:
    """With one scale for all features, since weights such as those of TF-IDF say how much a feature counts. Counts and
    one-hot features carry no such weights: theirs is the geometric mean of that scale and of their own, so that rare
    ones count more. Mean average precision of linear heads, yes only known, with own / one / both scales: TF-IDF of
    debtags 0.413 / 0.516 / 0.497, its counts 0.397 / 0.492 / 0.502, corel5k 0.245 / 0.242 / 0.248."""
    shared = shared_scale(found)
    assert shared.shared is not None
    return replace(shared, shared=(shared.shared * found.scale).sqrt()) if whole_numbers else shared


def sparse_features(x: Any, where: str = "X", names: Names | None = None) -> SparseRows:
    """A sparse matrix of numbers as items."""
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be a matrix of numbers; got a sparse one of {x.dtype} {x.shape}.")
    with np.errstate(over="ignore"):
        matrix = sp.csr_array(x, dtype=np.float32)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # it may share the caller's memory
        matrix.sum_duplicates()
    if (matrix.data == 0).any():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    if not usable(matrix.data):
        bad = np.flatnonzero(unusable(matrix.data))
        item = np.searchsorted(matrix.indptr, bad, side="right") - 1
        words = names or range(matrix.shape[1])
        found = zip(item, matrix.indices[bad], matrix.data[bad], strict=True)
        at = (f"item {i}, feature {words[j]}: {value:g}" for i, j, value in found)
        raise DataError(f"{where}: {len(bad)} features {REFUSED}{listing(at, len(bad))}\n{WAY_OUT}")
    return SparseRows(matrix, names)
