"""Questions for people, and their answers: a row per entry, with the columns item, label, score and answer.

The file that is written is the one that comes back, with 1 (yes), 0 (no), `cannot tell` or nothing in the column
`answer`: who cannot tell was asked and has said so; what is blank nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.atomic_io import PathLike
from partly.data.matching import refuse_unwritable
from partly.data.paths import check_file, check_suffix
from partly.data.tables import (
    INVALID,
    SUFFIXES,
    UNCERTAIN,
    Faults,
    Table,
    open_table,
    parse_ternary,
    text_column,
    write_table,
)
from partly.errors import DataError, did_you_mean
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy

COLUMNS = ("item", "label", "answer")
CANNOT_TELL = "cannot tell"  # as the ledger and the pages say it
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """What people said: rows and columns [n] of the labels they were asked about, and z [n] (+1 yes, -1 no); and how
    often they could not tell."""

    rows: Positions
    columns: Positions
    z: npt.NDArray[np.int8]
    unsure: int = 0

    def told(self, labels: Labels) -> Labels:
        """These labels, and the answers."""
        return labels.with_entries(self.rows, self.columns, self.z)


def write_questions(
    path: PathLike, labels: Labels, rows: Positions, columns: Positions, scores: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Questions about these entries, in this order, with an empty column for the answers."""
    path = Path(path)
    check_suffix(path, SUFFIXES)
    items, words = [labels.id_at(i) for i in rows.tolist()], [labels.names[j] for j in columns]
    refuse_unwritable(items, words, path)
    table: dict[str, Any] = {"item": pa.array(items, pa.string()), "label": pa.array(words, pa.string())}
    table |= {name: pa.array(np.asarray(part, np.float64)) for name, part in scores.items()}
    table["answer"] = pa.nulls(len(items), pa.int8())
    batch = pa.record_batch(table)
    write_table(path, batch.schema, iter([batch]))


def read_answers(
    path: PathLike,
    labels: Labels,
    hierarchy: Hierarchy | None = None,
    asked: tuple[Positions, Positions] | None = None,
) -> Answers:
    """The answers in a file, to questions about these labels; what nobody answered or could tell is left out.

    Refused, with the lines: items and labels that are not there, other values, an entry that is both yes and no, what
    contradicts the labels or the hierarchy, and what is not among the entries `asked`.
    """
    table = _opened(path)
    item, label, z = _cells(table)
    rows, columns = _rows(table, item, labels, asked), _positions(table, 1, label, labels.names)
    said = np.flatnonzero((z == 1) | (z == -1))  # lines with a yes or a no
    given = Answers(rows[said], columns[said], z[said])
    flat = given.rows * labels.shape[1] + given.columns
    if asked is not None:
        strange = said[~np.isin(flat, asked[0] * labels.shape[1] + asked[1])]
        faults = Faults(table, "answers to what was not asked this time")
        faults.add(strange, (f"{item[i]!r}, {label[i]!r}" for i in strange))
        faults.refuse("Is this the file of another round? Leave these lines out.")
    _refuse_both(table, said, flat, given.z)
    first = np.unique(flat, return_index=True)[1]  # the same answer twice is one
    unsure = int((z == UNCERTAIN).sum())
    said, given = said[first], Answers(given.rows[first], given.columns[first], given.z[first], unsure)
    _refuse_contradictions(table, said, given, labels, hierarchy)
    return given


def read_statements(path: PathLike) -> tuple[list[str], list[str], list[int | None]]:
    """Items, labels and answers (1 yes, 0 no, None cannot tell) of a file as they stand there, for who has no labels to
    compare with."""
    item, label, z = _cells(_opened(path))
    said = np.flatnonzero(z).tolist()
    return (
        [item[i] for i in said],
        [label[i] for i in said],
        [None if z[i] == UNCERTAIN else int(z[i] == 1) for i in said],
    )


def _opened(path: PathLike) -> Table:
    table = open_table(check_file(path, SUFFIXES))
    missing = [name for name in COLUMNS if name not in table.header]
    if missing:
        raise DataError(
            f"{table.place(-1)}: a file of answers has the columns {', '.join(COLUMNS)}; "
            f"{', '.join(missing)} is not there, but {', '.join(table.header)}."
        )
    return table


def _cells(table: Table) -> tuple[list[str], list[str], npt.NDArray[np.int8]]:
    """Item, label and answer of every line: +1, -1, UNSURE where somebody could not tell, 0 where it is blank."""
    items: list[str] = []
    labels: list[str] = []
    answers = [np.empty(0, np.int8)]
    wrong = Faults(table, f"answers that are not 1 or yes, 0 or no, {CANNOT_TELL!r} or blank (nobody said)")
    for batch in table.batches(COLUMNS):
        item, label, answer = batch.columns
        z = parse_ternary(answer, unsure=lambda cell: cell == CANNOT_TELL)
        bad = np.flatnonzero(z == INVALID)
        wrong.add(bad + len(items), (repr(answer[i].as_py()) for i in bad.tolist()))
        items += text_column(item, COLUMNS[0], table.path).to_pylist()
        labels += text_column(label, COLUMNS[1], table.path).to_pylist()
        answers.append(z)
    wrong.refuse("Leave blank what nobody knows.")
    return items, labels, np.concatenate(answers)


def _rows(table: Table, items: list[str], labels: Labels, asked: tuple[Positions, Positions] | None) -> Positions:
    """Where each item stands. Those that were asked about are tried first: of a million others no id need be made."""
    near = {labels.id_at(row): row for row in (() if asked is None else np.unique(asked[0]).tolist())}
    if all(item in near for item in items):
        return np.array([near[item] for item in items], np.int64)
    return _positions(table, 0, items, labels.ids)


def _positions(table: Table, column: int, words: list[str], known: Sequence[str]) -> Positions:
    """Where each word stands among those that are known."""
    at = {word: i for i, word in enumerate(known)}
    found = np.array([at.get(word, -1) for word in words], np.int64)
    lost = np.flatnonzero(found < 0)
    faults = Faults(table, f"{COLUMNS[column]}s that are not among the {len(known)} of the data")
    faults.add(lost, (repr(words[i]) + did_you_mean(words[i], known[:1000]) for i in lost))
    faults.refuse("Give back the file that was written, with answers and otherwise unchanged.")
    return found


def _refuse_both(table: Table, said: Positions, flat: Positions, z: npt.NDArray[np.int8]) -> None:
    """An entry that is answered twice, and not alike."""
    order = np.argsort(flat, kind="stable")
    before, after = order[:-1], order[1:]
    clash = (flat[before] == flat[after]) & (z[before] != z[after])
    faults = Faults(table, "entries that are answered both yes and no")
    places = (
        f"{_word(z[j])}, but {_word(z[i])} in {table.place(int(said[i]))}"
        for i, j in zip(before[clash], after[clash], strict=True)
    )
    faults.add(said[after[clash]], places)
    faults.refuse("Keep one of the two, or leave both blank.")


def _refuse_contradictions(
    table: Table, said: Positions, given: Answers, labels: Labels, hierarchy: Hierarchy | None
) -> None:
    """Answers against what is known, and against the hierarchy: a yes below a no."""
    n, names = np.arange(len(said)), labels.names
    known = labels.rows(given.rows)[n, given.columns]
    other = np.flatnonzero((known != 0) & (known != given.z))
    faults = Faults(table, "answers that contradict what is known already")
    faults.add(said[other], (f"{_word(given.z[i])}, but known to be {_word(known[i])}" for i in other))
    faults.refuse("Leave these lines out, or correct the labels.")
    z = given.told(labels).rows(given.rows)
    faults = Faults(table, "answers that contradict the hierarchy, a yes below a no")
    for child, parent in hierarchy.lines(names) if hierarchy else ():
        below = (given.columns == child) & (given.z == 1) & (z[:, parent] == -1)
        above = (given.columns == parent) & (given.z == -1) & (z[:, child] == 1)
        wrong = np.flatnonzero(below | above)
        faults.add(said[wrong], [f"{names[child]!r} is yes and {names[parent]!r} is no"] * len(wrong))
    faults.refuse("Correct one of the two.")


def _word(z: int) -> str:
    return "yes" if z == 1 else "no"
