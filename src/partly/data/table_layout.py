"""Layouts of label tables: the form of a table, its id and label columns, and its test rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.data.tables import (
    CELL_VALUES,
    INVALID,
    Faults,
    Table,
    first_cell,
    is_table,
    open_table,
    parse_cell,
    text_column,
)
from partly.errors import DataError, did_you_mean

ID = "item"
ID_COLUMNS = (ID, "id", "ID", "Id")  # the first that exists holds the ids, unless the caller names another
LONG = (ID, "label", "value")
TAGS = (ID, "label")
TAG_LISTS = "tags"  # column with all tags of an item
OPEN_IMAGES = ("ImageID", "LabelName", "Confidence")  # and Source; files of boxes have more
CHEXPERT = ("Path", "path", "dicom_id", "study_id")  # the first that exists holds the ids
SPLIT = "split"
PARTS = ("train", "test")
RANGE = re.compile(r"(.+?)\.\.(.+)")


# -------------------------------------------------------------------- forms


def is_long(header: Sequence[str]) -> bool:
    return tuple(header) == LONG


def is_tags(table: Table) -> bool:
    """Return whether rows are (item, label); not a wide table whose only label is named 'label'."""
    if tuple(table.header) != TAGS:
        return False
    first = first_cell(table, TAGS[1])
    return first is None or first not in CELL_VALUES


def is_tag_lists(table: Table) -> bool:
    """Return whether the column `tags` holds names of labels; a label of that name would hold values."""
    if TAG_LISTS not in table.header or is_long(table.header) or is_tags(table):
        return False
    return not holds_values(table, TAG_LISTS)


def holds_values(table: Table, name: str) -> bool:
    """Return whether the first cell of a column is yes, no or unknown, rather than one or several names of labels."""
    cell = first_cell(table, name)
    if cell is None or str(cell) in ("-1", "-1.0"):
        return True
    return not isinstance(cell, list) and parse_cell(cell, INVALID) != INVALID


def is_open_images(header: Sequence[str]) -> bool:
    return set(OPEN_IMAGES) <= set(header) and ID not in header


def is_chexpert(header: Sequence[str]) -> bool:
    return ID not in header and not is_open_images(header) and any(name in header for name in CHEXPERT)


# -------------------------------------------------------------------- columns that the caller names


class TableView:
    """A table whose ids are in the column `item`, whatever its name in the file.

    If no column holds ids (`by_position`), row numbers are the ids.
    """

    def __init__(self, table: Table, id_column: str | None) -> None:
        self.table, self.path, self.id_column = table, table.path, id_column
        self.by_position = id_column is None
        self.header = [ID, *(name for name in table.header if name != id_column)]
        self.decimal_comma, self.budget = table.decimal_comma, table.budget

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        names = [self.id_column if name == ID else name for name in columns]
        needed = [name for name in names if name is not None] or self.table.header[:1]
        count = 0
        for batch in self.table.batches(needed):
            numbers = pa.array(map(str, range(count, count + batch.num_rows)), pa.string())
            arrays = [numbers if name is None else batch.column(needed.index(name)) for name in names]
            count += batch.num_rows
            yield pa.record_batch(arrays, list(columns))

    def place(self, row: int) -> str:
        return self.table.place(row)


def with_id_column(table: Table, id_column: str | None = None) -> TableView:
    """Return the table with its ids in the column `item`, from the column that the caller names or a usual one."""
    if id_column is not None and id_column in table.header:
        if ID in table.header and id_column != ID:
            raise DataError(
                f"{table.place(-1)}: {id_column!r} is to hold the ids, but there is also a column {ID!r}. "
                f"Rename {ID!r}, or remove it."
            )
        return TableView(table, id_column)
    if id_column is not None and not any(name in table.header for name in ID_COLUMNS):
        raise DataError(
            f"{table.place(-1)}: there is no column {id_column!r} to hold the ids (--id-column, id_column=)."
            + did_you_mean(id_column, table.header)
        )
    return TableView(table, next((name for name in ID_COLUMNS if name in table.header), None))


def find_columns(header: Sequence[str], patterns: Sequence[str], where: str | None = None) -> list[str]:
    """Return the columns that match the patterns, in the order of the table.

    patterns : names, `label_*` or `first..last`; several may be joined by commas.
    where : table named in the error if a pattern matches nothing; None ignores such patterns.
    """
    matching = set[str]()
    for pattern in _split_patterns(header, patterns):
        ends = RANGE.fullmatch(pattern)
        if pattern in header:
            matching.add(pattern)
        elif ends and ends[1] in header and ends[2] in header:
            first, last = sorted((header.index(ends[1]), header.index(ends[2])))
            matching |= set(header[first : last + 1])
        else:
            globbed = {name for name in header if name != ID and "*" in pattern and fnmatchcase(name, pattern)}
            if not globbed and where is not None:
                raise DataError(f"{where}: no column is called {pattern!r}.{did_you_mean(pattern, header)}")
            matching |= globbed
    return [name for name in header if name in matching]


def _split_patterns(header: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        pieces = [pattern] if pattern in header else pattern.split(",")
        yield from (piece.strip() for piece in pieces if piece.strip())


# -------------------------------------------------------------------- train and test


def has_split(table: Table) -> bool:
    """Return whether the column `split` holds `train` or `test`; a label of that name would hold values."""
    return SPLIT in table.header and first_cell(table, SPLIT) in PARTS


def read_test_rows(path: Path) -> npt.NDArray[np.bool_] | None:
    """Return a mask of the rows for testing; None if the table has no column `split`."""
    if not is_table(path) or not has_split(table := open_table(path)):
        return None
    cells: list[str] = []
    for batch in table.batches([SPLIT]):
        cells += text_column(batch.column(0), SPLIT, path).to_pylist()
    bad = [i for i, cell in enumerate(cells) if cell not in PARTS]
    faults = Faults(table, f"cells of {SPLIT!r} that are not {' or '.join(PARTS)}")
    faults.add(bad, (repr(cells[i]) for i in bad))
    faults.refuse("Assign every item to one of the parts.")
    return np.array([cell == "test" for cell in cells])
