"""Long form: one row per known entry (item, label, 1 or 0); other entries are unknown.

A row with a blank value only declares its item and label. A written file begins with a row for every label, which keeps
their order, and has a row without label and value for every item without known entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.data.label_semantics import LabelSemantics, describe_option, labels_of
from partly.data.matching import refuse_unknown_labels
from partly.data.protocols import LabelFormat
from partly.data.table_layout import LONG, is_long, with_id_column
from partly.data.tables import (
    INVALID,
    SUFFIXES,
    UNCERTAIN,
    Faults,
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

GROUP_ROWS = 1 << 20
COPIES = 2  # of the codes in memory while they are concatenated
Codes = npt.NDArray[np.int32]


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_long(open_table(path).header)


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = with_id_column(open_table(path), semantics.id_column)
    return read_rows(table, LONG, names, semantics, lambda cell: str(cell) in ("-1", "-1.0"))


def read_rows(
    table: Table,
    columns: Sequence[str],
    names: Sequence[str] | None,
    semantics: LabelSemantics,
    unsure: Callable[[object], bool],
) -> Labels:
    """Read labels from one row per entry.

    columns : columns of item, label and value.
    unsure : returns whether a value is uncertain.

    Items, and labels without `names`, are in the order of first appearance.
    """
    _refuse_missing(table, columns)
    items: dict[str, int] = {}
    labels: dict[str, int] = {name: j for j, name in enumerate(names or ())}
    wrong = Faults(table, f"values that are not {SPELLINGS}")
    uncertain = Faults(table, "values that are neither yes nor no")
    incomplete = Faults(table, "values without an item or without a label")
    blocks: list[tuple[Codes, Codes, npt.NDArray[np.int8]]] = [(np.empty(0, np.int32),) * 2 + (np.empty(0, np.int8),)]
    start, named = 0, 0
    for batch in table.batches(columns):
        item, label, value = batch.columns
        row = encode_texts(text_column(item, columns[0], table.path), items)
        column = encode_texts(text_column(label, columns[1], table.path), labels)
        z = parse_ternary(value, unsure, semantics.missing)
        if semantics.uncertain is None:
            bad = np.flatnonzero(z == UNCERTAIN)
            uncertain.add(bad + start, (repr(value[i].as_py()) for i in bad.tolist()))
        bad = np.flatnonzero(z == INVALID)
        wrong.add(bad + start, (repr(value[i].as_py()) for i in bad.tolist()))
        bad = np.flatnonzero((z != 0) & ((row < 0) | (column < 0)))
        incomplete.add(bad + start, ("no item" if row[i] < 0 else "no label" for i in bad))
        blocks.append((row, column, z))
        table.budget.hold(COPIES * (row.nbytes + column.nbytes + z.nbytes))
        table.budget.hold_rows(len(items) + len(labels) - named)
        named = len(items) + len(labels)
        start += len(z)
    wrong.refuse("Write 1 or 0, and leave out entries that nobody checked.")
    uncertain.refuse(describe_option("uncertain"))
    incomplete.refuse("Name both, or leave the value blank.")
    row, column, z = (np.concatenate(block) for block in zip(*blocks, strict=True))
    if names is not None:
        unknown = list(labels)[len(names) :]
        refuse_unknown_labels(unknown, names, lambda label: table.place(int(np.argmax(column == labels[label]))))
    label_names = list(labels) if names is None else names
    try:
        return labels_of(row, column, z, list(items), label_names, semantics=semantics, path=table.path)
    except DataError:
        _refuse_clashes(table, np.flatnonzero((z == 1) | (z == -1)), row, column, z)
        raise


def write(labels: Labels, path: Path) -> None:
    schema = pa.schema([("item", pa.string()), ("label", pa.string()), ("value", pa.int8())])
    ids, names = pa.array(labels.ids, pa.string()), pa.array(labels.names, pa.string())

    def batch(row: npt.NDArray[Any], column: npt.NDArray[Any], value: npt.NDArray[Any]) -> Any:
        """Build a batch; -1 stands for a blank cell."""
        items, labels_taken, values = (pa.array(part, mask=part < 0) for part in (row, column, value.astype(np.int8)))
        return pa.record_batch([ids.take(items), names.take(labels_taken), values], schema=schema)

    def batches() -> Iterator[Any]:
        blank = np.full(len(names), -1)
        yield batch(blank, np.arange(len(names)), blank)
        for start, stop in pairwise(_block_edges(labels)):
            row, column, value = labels[start:stop].entries()
            without_entries = np.setdiff1d(np.arange(stop - start), row)
            blank = np.full(len(without_entries), -1)
            row = np.concatenate([row, without_entries])
            order = np.argsort(row, kind="stable")
            cells = (np.concatenate([part, blank])[order] for part in (column, value))
            yield batch(row[order] + start, *cells)

    write_table(path, schema, batches())


def _block_edges(labels: Labels) -> list[int]:
    """Return edges of blocks of items that take about GROUP_ROWS rows each."""
    rows = np.cumsum(np.maximum(labels.known_per_item(), 1))
    return [*np.searchsorted(rows, np.arange(0, rows[-1] if len(rows) else 0, GROUP_ROWS)).tolist(), len(labels)]


def _refuse_missing(table: Table, columns: Sequence[str]) -> None:
    if not set(columns) <= set(table.header):
        raise DataError(
            f"{table.place(-1)}: this form needs the columns {', '.join(columns)}. "
            f"The file begins with {', '.join(table.header[:5])}."
        )


def encode_texts(texts: Any, codes: dict[str, int]) -> Codes:
    """Encode texts as numbers, with new codes for new texts; -1 for blank ones."""
    encoded = texts.dictionary_encode()
    code = [codes.setdefault(text, len(codes)) if text.strip() else -1 for text in encoded.dictionary.to_pylist()]
    indices: Codes = encoded.indices.to_numpy()
    return np.array(code, np.int32)[indices]


def _refuse_clashes(table: Table, known: npt.NDArray[Any], row: Codes, column: Codes, z: npt.NDArray[np.int8]) -> None:
    """Refuse entries that are listed both as yes and as no, with their places."""
    order = known[np.lexsort((column[known], row[known]))]  # stable: equal entries stay in the file's order
    before, after = order[:-1], order[1:]
    clash = (row[before] == row[after]) & (column[before] == column[after]) & (z[before] != z[after])
    before, after = before[clash], after[clash]
    faults = Faults(table, "entries that are both yes and no")
    values = ("yes" if z[i] == 1 else "no" for i in after)
    faults.add(after, (f"{value}, but not in {table.place(int(i))}" for value, i in zip(values, before, strict=True)))
    faults.refuse("Keep one of the two, or leave both out: then the entry is unknown.")


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
