"""Long form: a row per entry, (item, label, 1 or 0); what is not listed is unknown. Without a column of values every
row is a yes: tags, of which nobody says what is absent.

A row whose value is blank says nothing of the entry, but the item and the label that it names are there. So a
written file begins with a row for every label (no item, no value), which keeps their order, and has a row without
label and value for every item of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.data.headers import LONG, is_long
from partly.data.label_semantics import LabelSemantics, how_to_say, labels_of
from partly.data.matching import refuse_unknown_labels
from partly.data.protocols import LabelFormat
from partly.data.table_view import view
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
COPIES = 2  # of what the rows say while it is put together
Codes = npt.NDArray[np.int32]


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_long(open_table(path).header)


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = view(open_table(path), semantics.id_column)
    return read_rows(table, LONG, names, semantics, lambda cell: str(cell) in ("-1", "-1.0"))


def read_rows(
    table: Table,
    columns: Sequence[str],
    names: Sequence[str] | None,
    semantics: LabelSemantics,
    unsure: Callable[[object], bool],
) -> Labels:
    """Labels from a row per entry: columns are those of item, label and value, and `unsure` says which values are
    uncertain. Items, and labels without `names`, come in the order of their first appearance."""
    _refuse_missing(table, columns)
    items: dict[str, int] = {}
    labels: dict[str, int] = {name: j for j, name in enumerate(names or ())}
    wrong = Faults(table, f"values that are not {SPELLINGS}")
    open_ones = Faults(table, "values that are neither yes nor no")
    homeless = Faults(table, "values without an item or without a label")
    parts: list[tuple[Codes, Codes, npt.NDArray[np.int8]]] = [(np.empty(0, np.int32),) * 2 + (np.empty(0, np.int8),)]
    start, named = 0, 0
    for batch in table.batches(columns):
        item, label, value = batch.columns
        row = coded(text_column(item, columns[0], table.path), items)
        column = coded(text_column(label, columns[1], table.path), labels)
        z = parse_ternary(value, unsure, semantics.missing)
        if semantics.uncertain is None:
            bad = np.flatnonzero(z == UNCERTAIN)
            open_ones.add(bad + start, (repr(value[i].as_py()) for i in bad.tolist()))
        bad = np.flatnonzero(z == INVALID)
        wrong.add(bad + start, (repr(value[i].as_py()) for i in bad.tolist()))
        lost = np.flatnonzero((z != 0) & ((row < 0) | (column < 0)))
        homeless.add(lost + start, ("no item" if row[i] < 0 else "no label" for i in lost))
        parts.append((row, column, z))
        table.budget.hold(COPIES * (row.nbytes + column.nbytes + z.nbytes))
        table.budget.hold_rows(len(items) + len(labels) - named)
        named = len(items) + len(labels)
        start += len(z)
    wrong.refuse("Write 1 or 0, and leave out what nobody checked; a guess is not an observation.")
    open_ones.refuse(how_to_say("uncertain"))
    homeless.refuse("Name both, or leave the value blank.")
    row, column, z = (np.concatenate(part) for part in zip(*parts, strict=True))
    if names is not None:
        strangers = list(labels)[len(names) :]
        refuse_unknown_labels(strangers, names, lambda label: table.place(int(np.argmax(column == labels[label]))))
    words = list(labels) if names is None else names
    try:
        return labels_of(row, column, z, list(items), words, semantics=semantics, path=table.path)
    except DataError:
        _refuse_clashes(table, np.flatnonzero((z == 1) | (z == -1)), row, column, z)
        raise


def write(labels: Labels, path: Path) -> None:
    schema = pa.schema([("item", pa.string()), ("label", pa.string()), ("value", pa.int8())])
    ids, names = pa.array(labels.ids, pa.string()), pa.array(labels.names, pa.string())

    def batch(row: npt.NDArray[Any], column: npt.NDArray[Any], value: npt.NDArray[Any]) -> Any:
        """-1: nothing."""
        items, words, values = (pa.array(part, mask=part < 0) for part in (row, column, value.astype(np.int8)))
        return pa.record_batch([ids.take(items), names.take(words), values], schema=schema)

    def batches() -> Iterator[Any]:
        nothing = np.full(len(names), -1)
        yield batch(nothing, np.arange(len(names)), nothing)
        for start, stop in pairwise(_edges(labels)):
            row, column, value = labels[start:stop].entries()
            silent = np.setdiff1d(np.arange(stop - start), row)
            nothing = np.full(len(silent), -1)
            row = np.concatenate([row, silent])
            order = np.argsort(row, kind="stable")
            parts = (np.concatenate([part, nothing])[order] for part in (column, value))
            yield batch(row[order] + start, *parts)

    write_table(path, schema, batches())


def _edges(labels: Labels) -> list[int]:
    """Where to cut the items so that each piece takes about GROUP_ROWS rows."""
    rows = np.cumsum(np.maximum(labels.known_per_item(), 1))
    return [*np.searchsorted(rows, np.arange(0, rows[-1] if len(rows) else 0, GROUP_ROWS)).tolist(), len(labels)]


def _refuse_missing(table: Table, columns: Sequence[str]) -> None:
    if not set(columns) <= set(table.header):
        raise DataError(
            f"{table.place(-1)}: a file of this form has the columns {', '.join(columns)}. "
            f"This one begins {', '.join(table.header[:5])}."
        )


def coded(words: Any, codes: dict[str, int]) -> Codes:
    """Words as numbers, new ones counted on; -1 where there is none."""
    encoded = words.dictionary_encode()
    code = [codes.setdefault(word, len(codes)) if word.strip() else -1 for word in encoded.dictionary.to_pylist()]
    indices: Codes = encoded.indices.to_numpy()
    return np.array(code, np.int32)[indices]


def _refuse_clashes(table: Table, known: npt.NDArray[Any], row: Codes, column: Codes, z: npt.NDArray[np.int8]) -> None:
    """Say where one entry was called both yes and no."""
    order = known[np.lexsort((column[known], row[known]))]  # stable: equal entries stay in the file's order
    before, after = order[:-1], order[1:]
    clash = (row[before] == row[after]) & (column[before] == column[after]) & (z[before] != z[after])
    before, after = before[clash], after[clash]
    faults = Faults(table, "entries that are said to be both yes and no")
    said = ("yes" if z[i] == 1 else "no" for i in after)
    faults.add(after, (f"{word}, but not in {table.place(int(i))}" for word, i in zip(said, before, strict=True)))
    faults.refuse("Keep one of the two, or leave both out: then the entry is unknown.")


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
