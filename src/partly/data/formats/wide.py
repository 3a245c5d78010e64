"""Wide form: one row per item and one column per label; a cell is 1 or yes, 0 or no, or blank (unknown).

A column `split` may mark test items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from partly.data.label_semantics import LabelSemantics, describe_option
from partly.data.matching import reorder_columns
from partly.data.paths import error_prefix
from partly.data.protocols import LabelFormat
from partly.data.table_layout import (
    ID,
    SPLIT,
    TableView,
    find_columns,
    has_split,
    is_chexpert,
    is_long,
    is_open_images,
    is_tag_lists,
    is_tags,
    with_id_column,
)
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

MINUS_ONE = ("-1", "-1.0")  # uncertain, if the caller chooses its value
COPIES = 3  # of the entries in memory while they are concatenated
MAX_DENSE_CELLS = 1 << 24  # up to this size a dense matrix is faster


def recognizes(path: Path) -> bool:
    """Return whether this is a table of no other form."""
    if not (is_table(path) and path.is_file()):
        return False
    table = open_table(path)
    header = table.header
    others = is_long(header) or is_tags(table) or is_tag_lists(table) or is_open_images(header) or is_chexpert(header)
    return not others


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = with_id_column(open_table(path), semantics.id_column)
    if semantics.label_columns:
        labels = find_columns(table.header, semantics.label_columns, table.place(-1))
    else:
        labels = [name for name in table.header if name != ID and not (name == SPLIT and has_split(table))]
    return read_cells(table, ID, labels, names, semantics)


def read_cells(
    table: Table, id_column: str, labels: Sequence[str], names: Sequence[str] | None, semantics: LabelSemantics
) -> Labels:
    """Read labels from these columns; `id_column` holds the ids."""
    wrong = Faults(table, f"cells that are not {SPELLINGS}")
    ids: list[str] = []
    blocks: list[Any] = []
    uncertain = Faults(table, "cells that are -1, neither yes nor no")
    for batch in table.batches([id_column, *labels]):
        z = np.zeros((batch.num_rows, len(labels)), np.int8)
        for j, column in enumerate(batch.columns[1:]):
            z[:, j] = parse_ternary(column, lambda cell: str(cell) in MINUS_ONE, semantics.missing)
        for faults, code in ((wrong, INVALID), *([(uncertain, UNCERTAIN)] if semantics.uncertain is None else [])):
            places = np.argwhere(z == code).tolist()
            cells = (f"label {labels[j]!r}: {batch.column(j + 1)[i].as_py()!r}" for i, j in places)
            faults.add([i + len(ids) for i, _ in places], cells)
        ids += text_column(batch.column(0), id_column, table.path).to_pylist()
        blocks.append(_compress(semantics.resolve(z)))
        table.budget.hold_rows(len(z))
        table.budget.hold(COPIES * (blocks[-1].nbytes if isinstance(blocks[-1], np.ndarray) else 5 * blocks[-1].nnz))
    wrong.refuse(_remedy(table, labels))
    uncertain.refuse(describe_option("uncertain"))
    if not ids and isinstance(table, TableView) and table.by_position:
        raise DataError(
            f"{table.place(-1)}: there are no rows and no column {ID!r} with ids; columns: {_shorten(table.header)}."
        )
    refuse_bad_ids(table, ids)
    with error_prefix(table.path):
        result = Labels.from_ternary(_concatenate(blocks, len(labels)), names=labels, ids=ids)
        return (
            result
            if names is None
            else semantics.fill_absent(reorder_columns(result, names, table.place(-1)), table.path)
        )


def _remedy(table: Table, labels: Sequence[str]) -> str:
    """Suggest what to do about cells that are not labels."""
    remedy = (
        "For another spelling of unknown: --missing VALUE (missing=). For other encodings: Labels.from_ternary etc."
    )
    if isinstance(table, TableView) and table.by_position:
        remedy += (
            f" If a column holds the ids of the items: --id-column NAME (id_column=); columns: {_shorten(labels)}."
        )
    if len(labels) == 1:
        remedy += " Names of labels need one row each in a table with the columns item,label; or a column 'tags'."
    else:
        remedy += " If some columns are not labels, name those that are: --label-columns a,b (label_columns=)."
    return remedy


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def write(labels: Labels, path: Path) -> None:
    if ID in labels.names or is_long((ID, *labels.names)):
        raise DataError(
            f"{path}: a wide file cannot have a label named {ID!r}, or only 'label' and 'value', because it would look "
            "like another form. Write form='long'."
        )
    write_cells(labels, path, ID)


def write_cells(labels: Labels, path: Path, id_column: str) -> None:
    """Write labels with this name for the column of ids."""
    header = (id_column, *labels.names)
    schema = pa.schema([(id_column, pa.string()), *((name, pa.int8()) for name in labels.names)])
    ids = pa.array(labels.ids, pa.string())
    step = max(1, GROUP_CELLS // len(header))

    def batches() -> Iterator[Any]:
        for start in range(0, len(labels), step):
            z = np.ascontiguousarray(labels.rows(slice(start, start + step)).T)
            columns = [pa.array((column == 1).astype(np.int8), mask=column == 0) for column in z]
            yield pa.record_batch([ids.slice(start, step), *columns], schema=schema)

    write_table(path, schema, batches())


def refuse_bad_ids(table: RowLocator, ids: Sequence[str]) -> None:
    first: dict[str, int] = {}
    bad = [row for row, name in enumerate(ids) if not name.strip() or first.setdefault(name, row) != row]
    faults = Faults(table, "items without an id, or with the id of an earlier one")
    faults.add(bad, (f"{ids[i]!r}, as in {table.place(first[ids[i]])}" if ids[i].strip() else "blank" for i in bad))
    faults.refuse("Every item has one row and its own id.")


def _compress(z: Any) -> Any:
    """Return a sparse matrix if it takes less memory (5 bytes per known entry)."""
    return z if z.size <= 5 * np.count_nonzero(z) else sp.csr_array(z)


def _concatenate(blocks: list[Any], width: int) -> Any:
    items = sum(block.shape[0] for block in blocks)
    known = sum(np.count_nonzero(block) if isinstance(block, np.ndarray) else block.nnz for block in blocks)
    if items * width > max(MAX_DENSE_CELLS, 5 * known):
        return sp.vstack(blocks, format="csr")
    dense = (block if isinstance(block, np.ndarray) else block.toarray() for block in blocks)
    return np.concatenate([np.empty((0, width), np.int8), *dense])


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
