"""Tables as the caller describes them: which column holds the ids of the items, and which columns are labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from partly.data.headers import ID
from partly.data.tables import Table
from partly.errors import DataError, did_you_mean

ID_COLUMNS = (ID, "id", "ID", "Id")  # columns that hold ids where the caller names none, the first that is there
RANGE = re.compile(r"(.+?)\.\.(.+)")


class TableView:
    """A table whose ids are in the column `item`, whatever the file calls it. Where no column holds ids
    (`by_position`), the positions of the rows are the ids."""

    def __init__(self, table: Table, id_column: str | None) -> None:
        self.table, self.path, self.id_column = table, table.path, id_column
        self.by_position = id_column is None
        self.header = [ID, *(name for name in table.header if name != id_column)]
        self.decimal_comma, self.budget = table.decimal_comma, table.budget

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        count, own = 0, [self.id_column if name == ID else name for name in columns]
        asked = [name for name in own if name is not None] or self.table.header[:1]
        for batch in self.table.batches(asked):
            numbers = pa.array(map(str, range(count, count + batch.num_rows)), pa.string())
            parts = [numbers if name is None else batch.column(asked.index(name)) for name in own]
            count += batch.num_rows
            yield pa.record_batch(parts, list(columns))

    def place(self, row: int) -> str:
        return self.table.place(row)


def view(table: Table, id_column: str | None = None) -> TableView:
    """The table with its ids in the column `item`: from the column that the caller names, else from `item` or `id`."""
    if id_column is not None and id_column in table.header:
        if ID in table.header and id_column != ID:
            raise DataError(
                f"{table.place(-1)}: there is a column {ID!r} beside {id_column!r}, which is to hold the ids. "
                f"Rename {ID!r}, or leave it out."
            )
        return TableView(table, id_column)
    if id_column is not None and not any(name in table.header for name in ID_COLUMNS):
        raise DataError(
            f"{table.place(-1)}: there is no column {id_column!r} to hold the ids (--id-column, id_column=)."
            + did_you_mean(id_column, table.header)
        )
    return TableView(table, next((name for name in ID_COLUMNS if name in table.header), None))


def matching_columns(header: Sequence[str], patterns: Sequence[str], where: str | None = None) -> list[str]:
    """Return the columns that `patterns` name, in the order of the table: names, `label_*`, or `first..last`, also
    several with commas between them. where: the table, in which each of them must be found; None: what is not there is
    passed over."""
    found = set[str]()
    for pattern in _separate(header, patterns):
        ends = RANGE.fullmatch(pattern)
        if pattern in header:
            found.add(pattern)
        elif ends and ends[1] in header and ends[2] in header:
            first, last = sorted((header.index(ends[1]), header.index(ends[2])))
            found |= set(header[first : last + 1])
        else:
            some = {name for name in header if name != ID and "*" in pattern and fnmatchcase(name, pattern)}
            if not some and where is not None:
                raise DataError(f"{where}: no column is called {pattern!r}.{did_you_mean(pattern, header)}")
            found |= some
    return [name for name in header if name in found]


def _separate(header: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    for pattern in patterns:
        parts = [pattern] if pattern in header else pattern.split(",")
        yield from (part.strip() for part in parts if part.strip())
