"""Tables of items that are not features: a column says what an item is, another one how it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from partly.data.json_lines import SUFFIXES as JSON
from partly.data.json_lines import JsonTable, is_json_lines
from partly.data.paths import plain_file
from partly.data.tables import SUFFIXES as TABLES
from partly.data.tables import Table, first_cell, open_table, text
from partly.data.wide import refuse_bad_ids
from partly.errors import PartlyError

SUFFIXES = (*TABLES, *JSON)
IDS = ("item", "id", "name")  # columns that hold ids, the first that is there
TEXT, PATH = "text", "path"  # columns that say what an item is


def open_rows(path: Path) -> Table | JsonTable:
    return JsonTable(path) if is_json_lines(path) else open_table(path)


def holds(path: Path) -> str | None:
    """What the items of this table are: the column `text` or `path`, "bytes", or None: then it may hold features, since
    a feature may be called anything, and its cells are numbers. Who reads a table that is damaged says why."""
    if not (path.name.lower().endswith(SUFFIXES) and path.is_file()):
        return None
    try:
        table = open_rows(path)
        named = (name for name in (TEXT, PATH) if name in table.header and not _is_number(first_cell(table, name)))
        return next(named, None) or ("bytes" if byte_columns(path) else None)
    except PartlyError:
        return None


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
    except (pa.ArrowException, OSError):
        return []
    return [field.name for field in schema if _is_bytes(_inner(field.type))]


def _inner(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return next((kind.field(i).type for i in range(kind.num_fields) if kind.field(i).name == "bytes"), kind)
    return kind


def _is_bytes(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def read_column(path: Path, name: str, otherwise: str | None = None) -> tuple[list[str], list[str], Table | JsonTable]:
    """Ids and the cells of a column. Where no column holds ids, the one called `otherwise` does; without it, positions
    are ids."""
    path = plain_file(path, SUFFIXES)
    table = open_rows(path)
    called = next((column for column in IDS if column in table.header), otherwise)
    ids: list[str] = []
    cells: list[str] = []
    for batch in table.batches([name] if called in (None, name) else [name, str(called)]):
        cells += text(batch.column(0), name, path).to_pylist()
        ids += [] if called is None else text(batch.column(batch.num_columns - 1), str(called), path).to_pylist()
    ids = list(map(str, range(len(cells)))) if called is None else ids
    refuse_bad_ids(table, ids)
    return ids, cells, table
