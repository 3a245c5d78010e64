"""Long form: a row per entry, (item, label, 1 or 0); what is not listed is unknown. Without a column of values every
row is a yes: tags, of which nobody says what is absent.

A row whose value is blank says nothing of the entry, but the item and the label that it names are there. So a
written file begins with a row for every label (no item, no value), which keeps their order, and has a row without
label and value for every item of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.data.matching import refuse_strangers
from partly.data.tables import (
    MEANING,
    SPELLINGS,
    SUFFIXES,
    WRONG,
    Faults,
    Table,
    first_cell,
    open_table,
    ternary,
    text,
    write_table,
)
from partly.errors import DataError, LabelError
from partly.labels import Labels

LONG = ("item", "label", "value")
TAGS = LONG[:2]
OPEN_IMAGES = ("ImageID", "Source", "LabelName", "Confidence")
HOLDS = "labels"
GROUP_ROWS = 1 << 20
Codes = npt.NDArray[np.int32]


def is_long(table: Table) -> bool:
    """The rule: a header is exactly one of these three, or the file is wide. So is one whose only label is named
    'label', and holds what labels hold and not their names."""
    header = tuple(table.header)
    return header in (LONG, OPEN_IMAGES) or (header == TAGS and first_cell(table, TAGS[1]) not in MEANING)


def recognises(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and is_long(open_table(path))


def read(path: Path, names: Sequence[str] | None = None) -> Labels:
    """Items, and labels without `names`, come in the order of their first appearance."""
    table = open_table(path)
    columns = _columns(table)
    items: dict[str, int] = {}
    labels: dict[str, int] = {name: j for j, name in enumerate(names or ())}
    wrong = Faults(table, f"values that are not {SPELLINGS}")
    homeless = Faults(table, "values without an item or without a label")
    parts: list[tuple[Codes, Codes, npt.NDArray[np.int8]]] = [(np.empty(0, np.int32),) * 2 + (np.empty(0, np.int8),)]
    start = 0
    for batch in table.batches(columns):
        item, label, *value = batch.columns
        row = _coded(text(item, columns[0], table.path), items)
        column = _coded(text(label, columns[1], table.path), labels)
        # A tag needs both words: an item without one is there, and nothing is known of it.
        z = ternary(value[0]) if value else ((row >= 0) & (column >= 0)).astype(np.int8)
        bad = np.flatnonzero(z == WRONG)
        wrong.add(bad + start, (repr(value[0][i].as_py()) for i in bad.tolist()))
        lost = np.flatnonzero((z != 0) & ((row < 0) | (column < 0)))
        homeless.add(lost + start, ("no item" if row[i] < 0 else "no label" for i in lost))
        parts.append((row, column, z))
        start += len(z)
    wrong.refuse("Write 1 or 0, and leave out what nobody checked; a guess is not an observation.")
    homeless.refuse("Name both, or leave the value blank.")
    row, column, z = (np.concatenate(part) for part in zip(*parts, strict=True))
    if names is not None:
        strangers = list(labels)[len(names) :]
        refuse_strangers(strangers, names, lambda label: table.place(int(np.argmax(column == labels[label]))))
    return _built(table, row, column, z, list(labels) if names is None else names, list(items))


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


def _columns(table: Table) -> tuple[str, ...]:
    """Item, label and value under the names they have here."""
    for columns in (LONG, (OPEN_IMAGES[0], *OPEN_IMAGES[2:]), TAGS):
        if set(columns) <= set(table.header):
            return columns
    raise DataError(
        f"{table.place(-1)}: a long file has the columns {', '.join(LONG)} (or, of tags, {', '.join(TAGS)}; or those "
        f"of Open Images, {', '.join(OPEN_IMAGES)}). This one begins {', '.join(table.header[:5])}."
    )


def _coded(words: Any, codes: dict[str, int]) -> Codes:
    """Words as numbers, new ones counted on; -1 where there is none."""
    encoded = words.dictionary_encode()
    code = [codes.setdefault(word, len(codes)) if word.strip() else -1 for word in encoded.dictionary.to_pylist()]
    indices: Codes = encoded.indices.to_numpy()
    return np.array(code, np.int32)[indices]


def _built(
    table: Table, row: Codes, column: Codes, z: npt.NDArray[np.int8], names: Sequence[str], ids: Sequence[str]
) -> Labels:
    known = np.flatnonzero(z)
    try:
        return Labels.from_codes(row[known], column[known], (z[known] == 1).astype(np.int8), names, ids)
    except LabelError as error:
        _refuse_clashes(table, known, row, column, z)
        raise DataError(f"{table.path}: {error}") from error


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
