"""The three-valued matrix itself, dense or CSR: int8, +1 yes, -1 no, 0 unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Ternary = npt.NDArray[np.int8]
Matrix = Any  # a boolean or int8 matrix: an ndarray, or a CSR array where the labels are sparse
Codes = npt.NDArray[Any]

BLOCK = 1 << 22  # entries that are made dense at a time
DENSE_BYTES = 1 << 24  # up to this size a dense matrix is simply faster


def freeze(z: Matrix) -> Matrix:
    """The same, read-only; CSR with sorted indices of four bytes."""
    sparse = sp.issparse(z)
    if sparse:
        z.sort_indices()
        z.indices = z.indices.astype(np.int32, copy=False)  # half the memory; L never needs more
        z.indptr = z.indptr.astype(np.int32 if z.nnz < 2**31 else np.int64, copy=False)
    for part in (z.data, z.indices, z.indptr) if sparse else (z,):
        part.setflags(write=False)
    return z


def dense_rows(z: Matrix, index: slice | npt.NDArray[np.int64]) -> Ternary:
    """Some rows, [len(index), L]."""
    part: Any = z[index]
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.int8)


def resolve_index(index: Any, count: int) -> slice | npt.NDArray[np.int64]:
    """Which of `count` rows an index means: a slice, positions or a boolean mask."""
    if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:
        index = index[0]  # scikit-learn picks the items of a fold by y[positions, ...]
    if isinstance(index, slice):
        return index
    chosen = np.asarray(index)
    if chosen.dtype == bool and chosen.shape == (count,):
        return np.flatnonzero(chosen)
    if isinstance(index, tuple) or chosen.ndim > 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise IndexError(
            f"Labels are picked by items: a slice, positions or a mask of {count}; got {type(index).__name__} "
            f"of {chosen.dtype}, shape {chosen.shape}."
        )
    return np.atleast_1d(chosen).astype(np.int64, copy=False)


def blocks(shape: tuple[int, int]) -> Iterator[slice]:
    """Runs of rows small enough to be made dense; always one at least, so that no rows is no special case."""
    step = max(1, BLOCK // max(1, shape[1]))
    for start in range(0, max(1, shape[0]), step):
        yield slice(start, min(start + step, shape[0]))


def map_blocks(z: Matrix, rule: Callable[[Ternary, slice], Ternary], width: int) -> Matrix:
    """rule(z [B, L], rows) -> [B, width] on block after block; what is sparse stays sparse."""
    parts = ((block, rule(dense_rows(z, block), block)) for block in blocks(z.shape))
    if sp.issparse(z):
        return sp.vstack([sp.csr_array(part) for _, part in parts], format="csr")
    result = np.empty((z.shape[0], width), np.int8)
    for block, part in parts:
        result[block] = part
    return result


def replace_entries(z: Matrix, rows: Codes, columns: Codes, values: Ternary) -> Matrix:
    """z with other values at some entries, each named once. Of a sparse one, only the rows that change are made
    dense."""
    if not sp.issparse(z):
        result = z.copy()
        result[rows, columns] = values
        return result
    return _changed(z, rows, columns, values) if len(rows) else z


def _changed(z: Any, rows: Codes, columns: Codes, values: Ternary) -> Any:
    items, at = np.unique(rows, return_inverse=True)
    parts: list[Any] = []
    for block in blocks((len(items), z.shape[1])):
        new = dense_rows(z, items[block])
        here = (at >= block.start) & (at < block.stop)
        new[at[here] - block.start, columns[here]] = values[here]
        parts.append(sp.csr_array(new))
    return _with_rows(z, items, sp.vstack(parts, format="csr"))


def _with_rows(z: Any, items: Codes, new: Any) -> Any:
    """z with these rows (in order, each once) replaced by those of `new`."""
    sizes = np.diff(z.indptr)
    sizes[items] = np.diff(new.indptr)
    starts, ends = z.indptr[items], z.indptr[items + 1]
    keep = list(zip([0, *ends], [*starts, z.nnz], strict=True))  # what lies between the rows that go
    rows = list(pairwise(new.indptr))

    def joined(old: Codes, fresh: Codes) -> Codes:
        parts = [old[slice(*keep[0])]]
        for kept, row in zip(keep[1:], rows, strict=True):
            parts += [fresh[slice(*row)], old[slice(*kept)]]
        return np.concatenate(parts)

    data, indices = joined(z.data, new.data), joined(z.indices, new.indices.astype(z.indices.dtype))
    pointers = np.concatenate([[0], np.cumsum(sizes)]).astype(z.indptr.dtype)  # as it is: SciPy would copy all indices
    return sp.csr_array((data, indices, pointers), shape=z.shape)


def scatter(values: Any, data: Ternary, absent: int) -> Matrix:
    """`data` in the places of the CSR array `values`, and `absent` in all others."""
    z = sp.csr_array((data, values.indices, values.indptr), shape=values.shape, copy=True)
    if absent == 0:
        z.eliminate_zeros()
        return z
    result = np.full(values.shape, absent, np.int8)  # nothing is unknown: no form is smaller
    result[z.tocoo().coords] = data
    return result


def gather_entries(
    z: Ternary, rows: Codes, columns: Codes, shape: tuple[int, int]
) -> tuple[Matrix, tuple[Codes, Codes]]:
    """(matrix of the entries z [K], (rows, columns) of those that are listed both as yes and as no)."""
    said = _summed(z, rows, columns, shape)
    clash = np.empty(0, np.int64)
    if said.nnz < len(z):
        times = _summed(np.ones_like(z), rows, columns, shape)
        clash = np.flatnonzero(abs(said.data) < times.data)
        said.data = np.sign(said.data)
    row, column = (part[clash] for part in said.tocoo().coords) if len(clash) else (clash, clash)
    said.data = said.data.astype(np.int8)
    small = shape[0] * shape[1] <= max(DENSE_BYTES, 5 * said.nnz)  # 5: the value's byte, the column's four
    return said.toarray() if small else said, (row, column)


def _summed(z: Ternary, rows: Codes, columns: Codes, shape: tuple[int, int]) -> Any:
    """CSR array; entries that are listed more than once are added up, and stay where they add up to 0."""
    return sp.coo_array((z.astype(np.int32), (rows, columns)), shape=shape).tocsr()
