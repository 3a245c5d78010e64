"""Wide form: a row per item, a column per label; a cell is 1 or yes, 0 or no, or blank (nobody said). A column `split`
may say which items are to test on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from partly.data.headers import ID, LONG, is_chexpert, is_long, is_open_images, is_tag_lists, is_tags
from partly.data.label_semantics import LabelSemantics, how_to_say
from partly.data.matching import reorder_columns
from partly.data.paths import error_prefix
from partly.data.protocols import LabelFormat
from partly.data.splits import COLUMN as SPLIT
from partly.data.splits import has_split
from partly.data.table_view import matching_columns, view
from partly.data.tables import (
    GROUP_CELLS,
    INVALID,
    SUFFIXES,
    UNCERTAIN,
    Faults,
    RowLocator,
    Table,
    is_table,
    open_table,
    parse_ternary,
    text_column,
    write_table,
)
from partly.errors import DataError
from partly.labels import Labels
from partly.labels.spellings import SPELLINGS

MINUS = ("-1", "-1.0")  # uncertain, where the caller says what that means
COPIES = 3  # of the entries while they are put together
SMALL = 1 << 24  # cells: up to here a dense matrix is simply faster


def recognizes(path: Path) -> bool:
    """Any table that is of no other form: one without ids is refused when it is read."""
    if not (is_table(path) and path.is_file()):
        return False
    table = open_table(path)
    header = table.header
    others = is_long(header) or is_tags(table) or is_tag_lists(table) or is_open_images(header) or is_chexpert(header)
    return not others


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = view(open_table(path), semantics.id_column)
    if semantics.label_columns:
        labels = matching_columns(table.header, semantics.label_columns, table.place(-1))
    else:
        labels = [name for name in table.header if name != ID and not (name == SPLIT and has_split(table))]
    return read_cells(table, ID, labels, names, semantics)


def read_cells(
    table: Table, called: str, labels: Sequence[str], names: Sequence[str] | None, semantics: LabelSemantics
) -> Labels:
    """Labels from the columns of these names; the one that is `called` so holds the ids."""
    wrong = Faults(table, f"cells that are not {SPELLINGS}")
    ids: list[str] = []
    blocks: list[Any] = []
    open_ones = Faults(table, "cells that are -1, neither yes nor no")
    for batch in table.batches([called, *labels]):
        z = np.zeros((batch.num_rows, len(labels)), np.int8)
        for j, column in enumerate(batch.columns[1:]):
            z[:, j] = parse_ternary(column, lambda cell: str(cell) in MINUS, semantics.missing)
        for faults, code in ((wrong, INVALID), *([(open_ones, UNCERTAIN)] if semantics.uncertain is None else [])):
            places = np.argwhere(z == code).tolist()
            cells = (f"label {labels[j]!r}: {batch.column(j + 1)[i].as_py()!r}" for i, j in places)
            faults.add([i + len(ids) for i, _ in places], cells)
        ids += text_column(batch.column(0), called, table.path).to_pylist()
        blocks.append(_smaller(semantics.settled(z)))
        table.budget.hold_rows(len(z))
        table.budget.hold(COPIES * (blocks[-1].nbytes if isinstance(blocks[-1], np.ndarray) else 5 * blocks[-1].nnz))
    wrong.refuse(_remedy(table, labels))
    open_ones.refuse(how_to_say("uncertain"))
    if not ids and getattr(table, "by_position", False):
        raise DataError(
            f"{table.place(-1)}: there are no rows, and no column {ID!r} with ids; columns: {_some(table.header)}."
        )
    refuse_bad_ids(table, ids)
    with error_prefix(table.path):
        result = Labels.from_ternary(_joined(blocks, len(labels)), names=labels, ids=ids)
        return (
            result if names is None else semantics.filled(reorder_columns(result, names, table.place(-1)), table.path)
        )


def _remedy(table: Table, labels: Sequence[str]) -> str:
    """What to do about cells that are no labels."""
    told = "Another spelling of unknown: --missing VALUE (missing=). Other encodings: Labels.from_ternary and others."
    if getattr(table, "by_position", False):
        told += f" If a column holds the ids of the items: --id-column NAME (id_column=); there is: {_some(labels)}."
    if len(labels) == 1:
        told += " Names of labels have a row each, in a table of two columns: item,label; or are a column 'tags'."
    else:
        told += " If some columns are no labels: --label-columns a,b (label_columns=) names those that are."
    return told


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def write(labels: Labels, path: Path) -> None:
    if ID in labels.names or is_long((ID, *labels.names)):
        raise DataError(
            f"{path}: no wide file can have a label named {ID!r}, or none but 'label' and 'value': it could not be "
            "told from others. Write form='long'."
        )
    write_cells(labels, path, ID)


def write_cells(labels: Labels, path: Path, called: str) -> None:
    """The same with another name for the column of ids."""
    header = (called, *labels.names)
    schema = pa.schema([(called, pa.string()), *((name, pa.int8()) for name in labels.names)])
    ids = pa.array(labels.ids, pa.string())
    step = max(1, GROUP_CELLS // len(header))

    def batches() -> Iterator[Any]:
        for start in range(0, len(labels), step):
            z = np.ascontiguousarray(labels.rows(slice(start, start + step)).T)
            columns = [pa.array((column == 1).astype(np.int8), mask=column == 0) for column in z]
            yield pa.record_batch([ids.slice(start, step), *columns], schema=schema)

    write_table(path, schema, batches())


def label_columns(table: Table) -> list[str]:
    """All columns but the one that holds the ids."""
    if ID not in table.header:
        raise DataError(
            f"{table.place(-1)}: there is no column {ID!r}. Give the column with the ids this name, or add one. "
            f"(Labels may have the columns {', '.join(LONG)}, or the first two where every row is a yes.) "
            f"This one begins {', '.join(table.header[:5])}."
        )
    return [name for name in table.header if name != ID]


def refuse_bad_ids(table: RowLocator, ids: Sequence[str]) -> None:
    first: dict[str, int] = {}
    bad = [row for row, name in enumerate(ids) if not name.strip() or first.setdefault(name, row) != row]
    faults = Faults(table, "items without an id, or with the id of an earlier one")
    faults.add(bad, (f"{ids[i]!r}, as in {table.place(first[ids[i]])}" if ids[i].strip() else "blank" for i in bad))
    faults.refuse("Every item has one row and its own id.")


def _smaller(z: Any) -> Any:
    """Dense, or sparse where that takes less memory (5 bytes for each known entry)."""
    return z if z.size <= 5 * np.count_nonzero(z) else sp.csr_array(z)


def _joined(blocks: list[Any], width: int) -> Any:
    items = sum(block.shape[0] for block in blocks)
    known = sum(np.count_nonzero(block) if isinstance(block, np.ndarray) else block.nnz for block in blocks)
    if items * width > max(SMALL, 5 * known):
        return sp.vstack(blocks, format="csr")
    parts = (block if isinstance(block, np.ndarray) else block.toarray() for block in blocks)
    return np.concatenate([np.empty((0, width), np.int8), *parts])


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
