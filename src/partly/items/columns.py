"""Match features by name: reorder columns as in training, and refuse missing or unknown ones by name."""

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

TEXT_COLUMNS_REMEDY = "Leave them out, or encode them as numbers (pandas.get_dummies, scikit-learn's OneHotEncoder)."


def reorder_features(items: Items, names: Names | None) -> Items:
    """Return the items with their features in the order of `names`; unchanged if either side has no names."""
    if names is None or items.names is None or items.names == names or not isinstance(items, Arrays | SparseRows):
        return items  # rows of a table are reordered when they are encoded
    order = match_features(names, items.names)
    if isinstance(items, SparseRows):
        matrix = items.matrix[:, order]
        matrix.sort_indices()
        return replace(items, matrix=matrix, names=names)
    return replace(items, array=items.array[:, order], names=names)


def reorder_table(table: Any, names: Sequence[str] | None) -> Any:
    """Return a pandas, polars or Arrow table with its columns in the order of `names`; anything else unchanged."""
    present = column_names(table)
    if names is None or present is None or list(present) == list(names):
        return table
    order = match_features(names, present)
    if hasattr(table, "iloc"):
        return table.iloc[:, order]
    return table.select(list(names))


def column_names(table: Any) -> Names | None:
    """Return the names of the columns of a table; None if they are not text."""
    names: Any = getattr(table, "column_names", None)  # Arrow, where `columns` are the columns themselves
    names = getattr(table, "columns", ()) if names is None else names
    return tuple(names) if len(names) and all(isinstance(name, str) for name in names) else None


def match_features(names: Sequence[str], present: Sequence[str]) -> Any:
    """Return the position of each name among those present; refuse missing and unknown ones."""
    position = {name: j for j, name in enumerate(present)}
    missing = [repr(name) for name in names if name not in position]
    unknown = [repr(name) for name in sorted(position.keys() - set(names), key=position.__getitem__)]
    if missing or unknown or len(position) < len(present):
        problems = [f"missing, {len(missing)}:" + listing(missing, len(missing))] if missing else []
        problems += [f"not in training, {len(unknown)}:" + listing(unknown, len(unknown))] if unknown else []
        problems += [] if missing or unknown else ["Some occur twice."]
        raise DataError(
            "The features differ from those of training. "
            + "\n".join(problems)
            + "\nGive exactly the same features, under the same names and in any order."
        )
    return np.array([position[name] for name in names])


def as_frame(table: Any) -> Any:
    """Convert a polars or Arrow table to pandas; return anything else unchanged."""
    return table.to_pandas() if column_names(table) is not None and hasattr(table, "to_pandas") else table


def is_frame(table: Any) -> bool:
    """Return whether this is a pandas frame."""
    return hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2


def is_mixed(table: Any) -> bool:
    """Return whether a pandas frame has missing values or columns that are not plain numbers."""
    if not is_frame(table):
        return False
    plain = all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in table.dtypes)
    return not plain or bool(table.isna().any(axis=None))


def describe_text_columns(table: Any) -> str:
    """Describe the columns of a pandas frame that are not numbers; '' if there are none."""
    if column_names(table) is None or not hasattr(table, "iloc"):
        return ""
    problems = []
    for j, name in enumerate(table.columns):
        column = table.iloc[:, j]
        try:
            np.asarray(column, dtype=float)
        except (TypeError, ValueError):
            problems.append(f"{name!r}: {next(cell for cell in column if not _is_number(cell))!r}")
    if not problems:
        return ""
    return (
        f"X: columns that are not numbers: {len(problems)}"
        + listing(problems, len(problems))
        + f"\n{TEXT_COLUMNS_REMEDY}"
    )


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True
