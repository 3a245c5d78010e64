"""Tables of items that are not features: a column says what an item is, another one how it is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from partly.data.formats.wide import refuse_bad_ids
from partly.data.headers import LONG, OPEN_IMAGES, is_long, is_open_images, is_tags
from partly.data.paths import check_file
from partly.data.tables import READABLE, Table, first_cell, is_table, open_table, text_column
from partly.errors import PartlyError

IDS = ("item", "id", "name")  # columns that hold ids, the first that is there
TEXT, PATH = "text", "path"  # columns that say what an item is
LABELS = "labels"  # there are none


def holds(path: Path) -> str | None:
    """What the items of this table are: the column `text` or `path`, "bytes", "labels" where there are none, or None:
    then it may hold features, since a feature may be called anything, and its cells are numbers. Who reads a table that
    is damaged says why."""
    if not (is_table(path) and path.is_file()):
        return None
    try:
        table = open_table(path)
        if _are_entries(table):
            return LABELS
        named = (name for name in (TEXT, PATH) if name in table.header and not _is_number(first_cell(table, name)))
        return next(named, None) or ("bytes" if byte_columns(path) else None)
    except PartlyError:
        return None


def _are_entries(table: Table) -> bool:
    """A row per entry: the labels are words, where features would be numbers."""
    name = OPEN_IMAGES[1] if is_open_images(table.header) else LONG[1]
    if not (is_long(table.header) or is_tags(table) or is_open_images(table.header)):
        return False
    cell = first_cell(table, name)
    return cell is not None and not _is_number(cell)


def _is_number(cell: object) -> bool:
    try:
        float(str(cell))
    except ValueError:
        return False
    return True


def byte_columns(path: Path) -> list[str]:
    """Columns of a Parquet file that hold bytes, or structures with `bytes`."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return []
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # reading the table says what is wrong
        return []
    return [field.name for field in schema if _is_bytes(_inner(field.type))]


def _inner(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return next((kind.field(i).type for i in range(kind.num_fields) if kind.field(i).name == "bytes"), kind)
    return kind


def _is_bytes(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def cells_of(
    table: Table, name: str, otherwise: str | None = None, id_column: str | None = None
) -> Iterator[tuple[list[str], list[str]]]:
    """Ids and the cells of a column, block after block. Where no column holds ids, the one called `otherwise` does;
    without it, positions are ids. id_column: the one that the caller names, where it is there."""
    called = next((column for column in (id_column, *IDS) if column in table.header), otherwise)
    count = 0
    for batch in table.batches([name] if called in (None, name) else [name, str(called)]):
        table.budget.hold_rows(batch.num_rows)
        cells = text_column(batch.column(0), name, table.path).to_pylist()
        if called is None:
            yield list(map(str, range(count, count + len(cells)))), cells
        else:
            yield text_column(batch.column(batch.num_columns - 1), called, table.path).to_pylist(), cells
        count += len(cells)


def read_column(
    path: Path, name: str, otherwise: str | None = None, id_column: str | None = None
) -> tuple[list[str], list[str]]:
    """All of `cells_of`, the ids seen to be there and to differ."""
    table = open_table(check_file(path, READABLE))
    ids: list[str] = []
    cells: list[str] = []
    for its, found in cells_of(table, name, otherwise, id_column):
        ids += its
        cells += found
        table.budget.hold(sum(map(len, found)))
    refuse_bad_ids(table, ids)
    return ids, cells
