"""Features: finite numbers, float32 [N, D], and their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from partly.data.files import PathLike, naming, plain_file
from partly.data.npz import as_text, read_npy, read_npz
from partly.data.tables import SUFFIXES, Table, open_table, text
from partly.data.wide import ID, label_columns, refuse_bad_ids
from partly.errors import DataError, listing
from partly.names import checked_ids

Features = npt.NDArray[np.float32]


def read_features(path: PathLike) -> tuple[Features, tuple[str, ...]]:
    """(features [N, D], ids) of a file; the ids are the positions, as text, where the file has none.

    CSV and Parquet: the column `item` holds the ids, all others numbers. `.npy`: the matrix. `.npz`: the array
    `features`, and `ids` where given.
    """
    path = plain_file(path, (*SUFFIXES, ".npy", ".npz"))
    if path.suffix.lower() in SUFFIXES:
        x, ids, _ = read_numbers(open_table(path))
        return x, ids
    npy = path.suffix.lower() == ".npy"
    arrays = {"features": read_npy(path)} if npy else read_npz(path, required=("features",), optional=("ids",))
    x = as_features(arrays["features"], str(path))
    with naming(path):
        return x, checked_ids(as_text(arrays, "ids", path) if "ids" in arrays else range(len(x)), len(x))


def as_features(x: Any, where: str, place: Callable[[int, int], str] = "item {}, column {}".format) -> Features:
    """The door for features: a matrix of finite numbers, as float32. `place(i, j)` says where one stands."""
    x = np.asarray(x)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise DataError(f"{where}: features must be a matrix of numbers, items x features; got {x.dtype} {x.shape}.")
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is refused as such
        result = np.ascontiguousarray(x, np.float32)
    bad = np.argwhere(~np.isfinite(result))
    if len(bad):
        places = (f"{place(i, j)}: {x[i, j]}" for i, j in bad.tolist())
        raise DataError(
            f"{where}: features that are missing, not finite or too large for float32: {len(bad)}"
            + listing(places, len(bad))
            + "\nFill them in or leave those items out first."
        )
    return result


def digest(array: npt.NDArray[Any]) -> str:
    """SHA-256 of an array's shape, type and numbers, to record with a run."""
    little = array.dtype.newbyteorder("<")
    sha = hashlib.sha256(f"{array.shape}{little.str}".encode())
    sha.update(np.ascontiguousarray(array, little).data)
    return sha.hexdigest()


def read_numbers(table: Table) -> tuple[Features, tuple[str, ...], tuple[str, ...]]:
    """(numbers [N, D], ids, names of the columns) of a wide table."""
    columns = label_columns(table)
    ids: list[str] = []
    blocks: list[npt.NDArray[np.float64]] = [np.empty((0, len(columns)))]
    text_columns: dict[str, str] = {}
    for batch in table.batches([ID, *columns]):
        x = np.empty((batch.num_rows, len(columns)))
        for j, (name, column) in enumerate(zip(columns, batch.columns[1:], strict=True)):
            try:
                x[:, j] = _numbers(column)
            except pa.ArrowException:
                text_columns.setdefault(name, f"column {name!r}, {table.place(len(ids) + _first_word(column))}")
        ids += text(batch.column(0), ID, table.path).to_pylist()
        blocks.append(x)
    if text_columns:
        raise DataError(
            f"{table.path}: columns that are not numbers: {len(text_columns)}"
            + listing(text_columns.values(), len(text_columns))
        )
    refuse_bad_ids(table, ids)

    def place(i: int, j: int) -> str:
        return f"{table.place(i)}: item {ids[i]!r}, column {columns[j]!r}"

    return as_features(np.concatenate(blocks), str(table.path), place), tuple(ids), tuple(columns)


def _numbers(column: Any) -> npt.NDArray[np.float64]:
    """NaN where the cell is blank."""
    if pa.types.is_string(column.type):
        column = pc.if_else(pc.equal(column, ""), None, column)
    numbers: npt.NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _first_word(column: Any) -> int:
    """The first cell that is not a number."""
    for i in range(len(column)):
        try:
            _numbers(column.slice(i, 1))
        except pa.ArrowException:
            return i
    return 0
