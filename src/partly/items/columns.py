"""Features by their names: columns that come in another order are put into that of training, and those that are missing
or strange are refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from partly.errors import DataError, listing
from partly.items.arrays import Arrays
from partly.items.contract import Items
from partly.items.sparse_rows import SparseRows
from partly.labels.names import Names

OF_WORDS = "Leave them out, or make numbers of them (pandas.get_dummies, scikit-learn's OneHotEncoder)."  # columns


def in_order(items: Items, names: Names | None) -> Items:
    """These items with their features in the order of `names`; as they are where either side has none, since then
    position counts."""
    if names is None or items.names is None or items.names == names or not isinstance(items, Arrays | SparseRows):
        return items  # rows of a table are put in order when they are encoded
    order = places(names, items.names)
    if isinstance(items, SparseRows):
        matrix = items.matrix[:, order]
        matrix.sort_indices()
        return replace(items, matrix=matrix, names=names)
    return replace(items, array=items.array[:, order], names=names)


def table_in_order(table: Any, names: Sequence[str] | None) -> Any:
    """The same of a table in memory, of pandas, polars or Arrow; anything else is given back as it is."""
    there = columns_of(table)
    if names is None or there is None or list(there) == list(names):
        return table
    order = places(names, there)
    if hasattr(table, "iloc"):
        return table.iloc[:, order]
    return table.select(list(names))


def columns_of(table: Any) -> Names | None:
    """What the columns of a table are called, where they are called anything: numbers are positions, no names."""
    words: Any = getattr(table, "column_names", None)  # Arrow, where `columns` are the columns themselves
    words = getattr(table, "columns", ()) if words is None else words
    return tuple(words) if len(words) and all(isinstance(word, str) for word in words) else None


def places(names: Sequence[str], there: Sequence[str]) -> Any:
    """Where each of these names is among those that are there."""
    at = {name: j for j, name in enumerate(there)}
    missing = [repr(name) for name in names if name not in at]
    strange = [repr(name) for name in sorted(at.keys() - set(names), key=at.__getitem__)]
    if missing or strange or len(at) < len(there):
        told = [f"missing, {len(missing)}:" + listing(missing, len(missing))] if missing else []
        told += [f"not in training, {len(strange)}:" + listing(strange, len(strange))] if strange else []
        told += [] if missing or strange else ["Some are there twice."]
        raise DataError(
            "The features are not those of training. "
            + "\n".join(told)
            + "\nGive all of them, under the same names and in any order, and nothing else."
        )
    return np.array([at[name] for name in names])


def as_frame(table: Any) -> Any:
    """A polars frame or an Arrow table as a pandas frame; anything else as it is."""
    return table.to_pandas() if columns_of(table) is not None and hasattr(table, "to_pandas") else table


def is_frame(table: Any) -> bool:
    """Tell whether this is a pandas frame."""
    return hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2


def is_mixed(table: Any) -> bool:
    """Tell whether a pandas frame has columns that are not plain numbers, or missing values."""
    if not is_frame(table):
        return False
    plain = all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in table.dtypes)
    return not plain or bool(table.isna().any(axis=None))


def words_in(table: Any) -> str:
    """Which columns of a table hold something that is no number, and what: '' where there are none, or no table."""
    if columns_of(table) is None or not hasattr(table, "iloc"):
        return ""
    found = []
    for j, name in enumerate(table.columns):
        column = table.iloc[:, j]
        try:
            np.asarray(column, dtype=float)
        except (TypeError, ValueError):
            found.append(f"{name!r}: {next(cell for cell in column if not _is_number(cell))!r}")
    if not found:
        return ""
    return f"X: columns that are not numbers: {len(found)}" + listing(found, len(found)) + f"\n{OF_WORDS}"


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
