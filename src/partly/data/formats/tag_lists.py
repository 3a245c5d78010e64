"""A table with all tags of an item in one cell: the column `tags`, or the one that the caller names.

A cell is a text with separators (`cat;dog`), a list in brackets, or a list (Parquet, JSON). A tag means yes; the caller
chooses the value of other labels with `absent=`. A blank cell means that nothing is known about the item, `[]` that it
has no tags. Other columns are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from partly.data.formats.wide import refuse_bad_ids
from partly.data.label_semantics import LabelSemantics, labels_of
from partly.data.matching import refuse_unknown_labels
from partly.data.paths import error_prefix
from partly.data.protocols import LabelFormat
from partly.data.table_layout import ID, TAG_LISTS, find_columns, is_tag_lists, with_id_column
from partly.data.tables import SUFFIXES, Table, is_table, open_table, text_column
from partly.labels import Labels
from partly.labels.tag_rows import read_tags

COPIES = 4  # of the tags in memory: cells, tags and codes


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_tag_lists(open_table(path))


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table, column = with_id_column(open_table(path), semantics.id_column), TAG_LISTS
    if semantics.label_columns:
        (column,) = find_columns(table.header, semantics.label_columns)
    return read_column(table, column, names, semantics)


def read_column(table: Table, column: str, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    """Read labels from the tags in one column."""
    ids, rows = list[str](), list[Any]()
    for batch in table.batches([ID, column]):
        ids += text_column(batch.column(0), ID, table.path).to_pylist()
        rows += cells_of_tags(batch.column(1), semantics)
        table.budget.hold_rows(2 * batch.num_rows)
        table.budget.hold(COPIES * batch.column(1).nbytes)
    refuse_bad_ids(table, ids)
    return labels_of_tags(rows, ids, column, names, semantics, str(table.path))


def cells_of_tags(column: Any, semantics: LabelSemantics) -> list[Any]:
    """Return the cells of a column, with None for spellings of unknown that the caller names."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    unknown = {word.strip().lower() for word in semantics.missing}
    cells: list[Any] = column.to_pylist()
    return [None if isinstance(cell, str) and cell.strip().lower() in unknown else cell for cell in cells]


def labels_of_tags(
    rows: Sequence[Any],
    ids: Sequence[str],
    column: str,
    names: Sequence[str] | None,
    semantics: LabelSemantics,
    where: str,
) -> Labels:
    """Build labels from the tags of each item."""
    semantics.need_absent(where, f"the column {column!r} lists positives: other labels may be absent or unknown.")
    with error_prefix(Path(where)):
        items, tags, unseen, _ = read_tags(rows, semantics.tag_separator, f"column {column!r}")
    found_tags = list(dict.fromkeys(tags))
    if names is not None:
        refuse_unknown_labels([tag for tag in found_tags if tag not in set(names)], names, lambda _: where)
    position = {name: j for j, name in enumerate(found_tags if names is None else names)}
    columns = [position[tag] for tag in tags]
    return labels_of(
        items, columns, [1] * len(tags), ids, list(position), semantics=semantics, path=where, unseen=unseen
    )


FORMAT = LabelFormat(recognizes, read, suffixes=SUFFIXES)
