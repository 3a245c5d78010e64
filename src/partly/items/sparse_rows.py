"""Rows of a SciPy CSR matrix, such as TF-IDF features. Only batches are made dense."""

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
from partly.items.arrays import REFUSED, REMEDY, Sums, find_unusable, is_usable
from partly.items.contract import Index, Kind, Positions, Statistics, select_rows, with_shared_scale
from partly.labels.names import Names

BLOCK = 1 << 22  # stored numbers processed at a time


@dataclass(frozen=True, eq=False)
class SparseRows:
    """All or some rows of a canonical CSR matrix of float32."""

    matrix: Any
    names: Names | None = None
    rows: Positions | None = None  # None: all
    kind: Kind = "features"
    origin: None = None
    encoding: None = None
    conditioning: None = None

    def __len__(self) -> int:
        return int(self.matrix.shape[0]) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (int(self.matrix.shape[1]),)

    def __getitem__(self, index: Index) -> SparseRows:
        return SparseRows(self.matrix, self.names, select_rows(self.rows, index, len(self)))

    def take(self, index: Tensor | slice) -> Tensor:
        return torch.from_numpy(self._part(index if isinstance(index, slice) else index.numpy()).toarray())

    def _part(self, index: Index) -> Any:
        return self.matrix[index if self.rows is None else self.rows[index]]

    # ---------------------------------------------------------------- one pass over all items

    @property
    def statistics(self) -> Statistics:
        """Scale without a mean, so that 0 stays 0."""
        return self._statistics[0]

    def digest(self) -> str:
        return self._statistics[1]

    @cached_property
    def _statistics(self) -> tuple[Statistics, str]:
        # One digest per array, so that the block size does not matter.
        shas = [hashlib.sha256(f"csr{(len(self), *self.shape)}".encode()), hashlib.sha256(), hashlib.sha256()]
        sums, width, whole_numbers = Sums(), self.shape[0], True
        per_item = self.matrix.nnz / max(1, self.matrix.shape[0])
        step = max(1, int(BLOCK / max(1.0, per_item)))
        for start in range(0, len(self), step):
            part = self._part(slice(start, start + step))
            arrays = (np.diff(part.indptr).astype("<i8"), part.indices.astype("<i4"), part.data)
            for sha, values in zip(shas, arrays, strict=True):
                sha.update(np.ascontiguousarray(values).data)
            whole_numbers = whole_numbers and not (part.data % 1).any()
            data, at, count = part.data.astype(np.float64), part.indices, part.shape[0]
            mean = np.bincount(at, data, width) / count
            zeros = count - np.bincount(at, minlength=width)
            squares = np.bincount(at, (data - mean[at]) ** 2, width) + zeros * mean**2
            sums.merge(count, torch.from_numpy(mean), torch.from_numpy(squares))
        total = sums.statistics()
        # The mean is not subtracted, so a feature that hardly varies about it counts as constant: scale 0.
        scale = torch.where(total.scale > 1e-6 * total.mean.abs(), total.scale, 0.0)
        digest = hashlib.sha256("".join(sha.hexdigest() for sha in shas).encode()).hexdigest()
        return _share_scale(Statistics(torch.zeros_like(scale), scale), whole_numbers), digest


def _share_scale(statistics: Statistics, whole_numbers: bool) -> Statistics:
    """Add one scale for all features, because weights such as TF-IDF say how much a feature counts.

    Counts and one-hot features carry no such weights: they get the geometric mean of that scale and their own, so that
    rare features count more.
    """
    shared = with_shared_scale(statistics)
    assert shared.shared is not None
    return replace(shared, shared=(shared.shared * statistics.scale).sqrt()) if whole_numbers else shared


def sparse_features(x: Any, where: str = "X", names: Names | None = None) -> SparseRows:
    """Wrap a sparse matrix of numbers."""
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
    if not is_usable(matrix.data):
        bad = np.flatnonzero(find_unusable(matrix.data))
        rows = np.searchsorted(matrix.indptr, bad, side="right") - 1
        columns = names or range(matrix.shape[1])
        entries = zip(rows, matrix.indices[bad], matrix.data[bad], strict=True)
        places = (f"item {i}, feature {columns[j]}: {value:g}" for i, j, value in entries)
        raise DataError(f"{where}: {len(bad)} features {REFUSED}{listing(places, len(bad))}\n{REMEDY}")
    return SparseRows(matrix, names)
