"""Tables of texts or images: one column holds the item, its path or its bytes, another one the id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from partly.data.formats.wide import refuse_bad_ids
from partly.data.paths import check_file
from partly.data.table_layout import LONG, OPEN_IMAGES, is_long, is_open_images, is_tags
from partly.data.tables import READABLE, Table, first_cell, is_table, open_table, text_column
from partly.errors import PartlyError

IDS = ("item", "id", "name")  # the first that exists holds the ids
TEXT, PATH = "text", "path"
LABELS = "labels"  # the table holds labels and no items


def detect_content(path: Path) -> str | None:
    """Return what a table holds: the column "text" or "path", "bytes", "labels", or None for anything else.

    A feature may have any name, so cells that are numbers are features. Damaged tables give None; reading them fails.
    """
    if not (is_table(path) and path.is_file()):
        return None
    try:
        table = open_table(path)
        if _are_entries(table):
            return LABELS
        columns = (name for name in (TEXT, PATH) if name in table.header and not _is_number(first_cell(table, name)))
        return next(columns, None) or ("bytes" if byte_columns(path) else None)
    except PartlyError:
        return None


def _are_entries(table: Table) -> bool:
    """Return whether rows are entries: their labels are text, where features would be numbers."""
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
    """Return the columns of a Parquet file that hold bytes, or structures with `bytes`."""
    if path.suffix.lower() != ".parquet" or not path.is_file():
        return []
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError):  # reading the table reports the error
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
    """Yield blocks of ids and cells of a column.

    The ids come from `id_column` or one of `IDS` if they exist, else from the column `otherwise`, else from positions.
    """
    ids_from = next((column for column in (id_column, *IDS) if column in table.header), otherwise)
    count = 0
    for batch in table.batches([name] if ids_from in (None, name) else [name, str(ids_from)]):
        table.budget.hold_rows(batch.num_rows)
        cells = text_column(batch.column(0), name, table.path).to_pylist()
        if ids_from is None:
            yield list(map(str, range(count, count + len(cells)))), cells
        else:
            yield text_column(batch.column(batch.num_columns - 1), ids_from, table.path).to_pylist(), cells
        count += len(cells)


def read_column(
    path: Path, name: str, otherwise: str | None = None, id_column: str | None = None
) -> tuple[list[str], list[str]]:
    """Read all ids and cells of a column; refuse blank and repeated ids."""
    table = open_table(check_file(path, READABLE))
    ids: list[str] = []
    cells: list[str] = []
    for block_ids, block_cells in cells_of(table, name, otherwise, id_column):
        ids += block_ids
        cells += block_cells
        table.budget.hold(sum(map(len, block_cells)))
    refuse_bad_ids(table, ids)
    return ids, cells
