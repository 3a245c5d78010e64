"""Side information from `.csv` or `.parquet` files: related labels, and classes of items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.atomic_io import PathLike
from partly.data.matching import refuse_unknown_labels
from partly.data.paths import check_file
from partly.data.tables import SUFFIXES, Faults, Table, open_table, text_column
from partly.errors import DataError

EDGES, WEIGHT = ("label", "related"), "weight"
CLASSES = ("item", "class")


def read_edges(
    path: PathLike, names: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Read a label graph: one row per edge, with the columns label, related and optionally weight (1 by default).

    `label` listens to `related`; write two rows for both directions. Returns positions among `names`, and weights.
    """
    table = open_table(check_file(path, SUFFIXES))
    weighted = WEIGHT in table.header
    columns = _columns(table, (*EDGES, *([WEIGHT] if weighted else [])), "and perhaps weight")
    at = {name: j for j, name in enumerate(names)}
    strangers = {word: row for part in columns[:2] for row, word in enumerate(part) if word not in at}
    refuse_unknown_labels(list(strangers), names, lambda word: table.place(strangers[word]))
    _refuse_repeated(table, list(zip(*columns[:2], strict=True)), "an edge is there once, with one weight")
    weights = _weights(table, columns[2]) if weighted else np.ones(len(columns[0]))
    label, related = (np.array([at[word] for word in part], dtype=np.int64) for part in columns[:2])
    return label, related, weights


def read_classes(path: PathLike, ids: Sequence[str]) -> npt.NDArray[np.int64]:
    """Read the class of each item from the columns item and class, as numbers; -1 for items without a class."""
    table = open_table(check_file(path, SUFFIXES))
    items, classes = _columns(table, CLASSES, "")
    _refuse_repeated(table, items, "an item has one class")
    number = {word: i for i, word in enumerate(dict.fromkeys(word for word in classes if word))}
    class_of = dict(zip(items, classes, strict=True))
    if not set(class_of) & set(ids):
        raise DataError(f"{table.path}: none of the {len(ids)} items is in it, such as {ids[0]!r}.")
    return np.array([number.get(class_of.get(i, ""), -1) for i in ids], dtype=np.int64)


def _refuse_repeated(table: Table, keys: Sequence[str | tuple[str, ...]], rule: str) -> None:
    first: dict[str | tuple[str, ...], int] = {}
    again = [row for row, key in enumerate(keys) if first.setdefault(key, row) != row]
    wrong = Faults(table, "rows that say again what an earlier one said")
    wrong.add(again, (repr(keys[row]) for row in again))
    wrong.refuse(f"Keep one of them: {rule}.")


def _weights(table: Table, cells: list[Any]) -> npt.NDArray[np.float64]:
    wrong = Faults(table, "weights that are not numbers of 0 or more")
    weights = np.zeros(len(cells))
    for row, cell in enumerate(cells):
        try:
            weights[row] = float(cell)
        except (TypeError, ValueError):  # None in a Parquet file
            weights[row] = -1.0
        if not 0 <= weights[row] < math.inf:
            wrong.add([row], [repr(cell)])
    wrong.refuse("Leave the column out if all edges are alike.")
    return weights


def _columns(table: Table, wanted: Sequence[str], also: str) -> list[list[Any]]:
    missing = [name for name in wanted if name not in table.header]
    if missing:
        raise DataError(
            f"{table.path}: the columns must be {' and '.join(wanted[:2])} {also}".rstrip()
            + f"; there is {', '.join(table.header)}."
        )
    batches = list(table.batches(wanted))
    return [
        [cell for batch in batches for cell in _cells(table, batch.column(i), name)] for i, name in enumerate(wanted)
    ]


def _cells(table: Table, column: Any, name: str) -> list[Any]:
    """Return text cells; weights keep their type, since Parquet files hold numbers."""
    cells: list[Any] = (column if name == WEIGHT else text_column(column, name, table.path)).to_pylist()
    return cells
