"""The ternary matrix, dense or CSR: int8, +1 yes, -1 no, 0 unknown."""

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
DENSE_BYTES = 1 << 24  # up to this size a dense matrix is faster


def freeze(z: Matrix) -> Matrix:
    """Make the matrix read-only, and a CSR array canonical with indices of four bytes."""
    sparse = sp.issparse(z)
    if sparse:
        z.sort_indices()
        z.indices = z.indices.astype(np.int32, copy=False)  # half the memory; L never needs more
        z.indptr = z.indptr.astype(np.int32 if z.nnz < 2**31 else np.int64, copy=False)
    for part in (z.data, z.indices, z.indptr) if sparse else (z,):
        part.setflags(write=False)
    return z


def dense_rows(z: Matrix, index: slice | npt.NDArray[np.int64]) -> Ternary:
    """Return some rows as a dense array, [len(index), L]."""
    part: Any = z[index]
    return np.asarray(part if isinstance(part, np.ndarray) else part.toarray(), dtype=np.int8)


def resolve_index(index: Any, count: int) -> slice | npt.NDArray[np.int64]:
    """Return the slice or positions that an index selects among `count` rows."""
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
    """Yield blocks of rows that are small enough to be dense; at least one, also without rows."""
    step = max(1, BLOCK // max(1, shape[1]))
    for start in range(0, max(1, shape[0]), step):
        yield slice(start, min(start + step, shape[0]))


def map_blocks(z: Matrix, rule: Callable[[Ternary, slice], Ternary], width: int) -> Matrix:
    """Apply rule(z [B, L], rows) -> [B, width] to blocks of rows; a sparse matrix stays sparse."""
    computed = ((block, rule(dense_rows(z, block), block)) for block in blocks(z.shape))
    if sp.issparse(z):
        return sp.vstack([sp.csr_array(part) for _, part in computed], format="csr")
    result = np.empty((z.shape[0], width), np.int8)
    for block, part in computed:
        result[block] = part
    return result


def replace_entries(z: Matrix, rows: Codes, columns: Codes, values: Ternary) -> Matrix:
    """Replace some entries; of a sparse matrix only the changed rows are made dense."""
    if not sp.issparse(z):
        result = z.copy()
        result[rows, columns] = values
        return result
    return _replace_sparse(z, rows, columns, values) if len(rows) else z


def _replace_sparse(z: Any, rows: Codes, columns: Codes, values: Ternary) -> Any:
    items, position = np.unique(rows, return_inverse=True)
    parts: list[Any] = []
    for block in blocks((len(items), z.shape[1])):
        new = dense_rows(z, items[block])
        in_block = (position >= block.start) & (position < block.stop)
        new[position[in_block] - block.start, columns[in_block]] = values[in_block]
        parts.append(sp.csr_array(new))
    return _with_rows(z, items, sp.vstack(parts, format="csr"))


def _with_rows(z: Any, items: Codes, new: Any) -> Any:
    """Replace these rows (sorted, each once) by those of `new`."""
    sizes = np.diff(z.indptr)
    sizes[items] = np.diff(new.indptr)
    starts, ends = z.indptr[items], z.indptr[items + 1]
    keep = list(zip([0, *ends], [*starts, z.nnz], strict=True))  # spans between the replaced rows
    rows = list(pairwise(new.indptr))

    def splice(old: Codes, fresh: Codes) -> Codes:
        pieces = [old[slice(*keep[0])]]
        for span, row in zip(keep[1:], rows, strict=True):
            pieces += [fresh[slice(*row)], old[slice(*span)]]
        return np.concatenate(pieces)

    data, indices = splice(z.data, new.data), splice(z.indices, new.indices.astype(z.indices.dtype))
    pointers = np.concatenate([[0], np.cumsum(sizes)]).astype(
        z.indptr.dtype
    )  # same dtype: SciPy would copy all indices otherwise
    return sp.csr_array((data, indices, pointers), shape=z.shape)


def scatter(values: Any, data: Ternary, absent: int) -> Matrix:
    """Put `data` at the stored places of the CSR array `values`, and `absent` everywhere else."""
    z = sp.csr_array((data, values.indices, values.indptr), shape=values.shape, copy=True)
    if absent == 0:
        z.eliminate_zeros()
        return z
    result = np.full(values.shape, absent, np.int8)  # nothing is unknown: a sparse matrix would not be smaller
    result[z.tocoo().coords] = data
    return result


def gather_entries(
    z: Ternary, rows: Codes, columns: Codes, shape: tuple[int, int]
) -> tuple[Matrix, tuple[Codes, Codes]]:
    """Return the matrix of the entries z [K], and rows and columns of those that are both yes and no."""
    matrix = _sum_entries(z, rows, columns, shape)
    clash = np.empty(0, np.int64)
    if matrix.nnz < len(z):
        times = _sum_entries(np.ones_like(z), rows, columns, shape)
        clash = np.flatnonzero(abs(matrix.data) < times.data)
        matrix.data = np.sign(matrix.data)
    row, column = (part[clash] for part in matrix.tocoo().coords) if len(clash) else (clash, clash)
    matrix.data = matrix.data.astype(np.int8)
    small = shape[0] * shape[1] <= max(DENSE_BYTES, 5 * matrix.nnz)  # 5: the value's byte, the column's four
    return matrix.toarray() if small else matrix, (row, column)


def _sum_entries(z: Ternary, rows: Codes, columns: Codes, shape: tuple[int, int]) -> Any:
    """Return a CSR array; repeated entries are added up, and are stored even if the sum is 0."""
    return sp.coo_array((z.astype(np.int32), (rows, columns)), shape=shape).tocsr()
