"""Groups of items: one column of a table with ids."""

from __future__ import annotations

from pathlib import Path

from partly.data.formats.wide import refuse_bad_ids
from partly.data.paths import check_file
from partly.data.table_layout import ID, with_id_column
from partly.data.tables import READABLE, open_table, text_column
from partly.errors import DataError, did_you_mean


def read_groups(path: Path, column: str, id_column: str | None = None) -> dict[str, str]:
    """Return the group of each id; a blank cell is the group without a name."""
    table = with_id_column(open_table(check_file(path, READABLE)), id_column)
    if column not in table.header or column == ID:
        raise DataError(
            f"{path}: there is no column {column!r} to group items by.{did_you_mean(column, table.header)} "
            "Name the table that has it: --groups items.csv."
        )
    ids, groups = list[str](), list[str]()
    for batch in table.batches([ID, column]):
        ids += text_column(batch.column(0), ID, path).to_pylist()
        groups += ["" if cell is None else str(cell) for cell in batch.column(1).to_pylist()]
    refuse_bad_ids(table, ids)
    return dict(zip(ids, groups, strict=True))
