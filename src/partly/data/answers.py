"""Question files and their answers: one row per entry, with the columns item, label, score and answer.

The written file comes back with 1 (yes), 0 (no), `cannot tell` or nothing in the column `answer`. Blank means that the
question was not answered.
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
    is_table,
    open_table,
    parse_ternary,
    text_column,
    write_table,
)
from partly.errors import DataError, did_you_mean
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy

COLUMNS = ("item", "label", "answer")
CANNOT_TELL = "cannot tell"  # same spelling as in the ledger and on the pages
Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Answers z [n] (+1 yes, -1 no) at rows and columns [n], and the number of `cannot tell`."""

    rows: Positions
    columns: Positions
    z: npt.NDArray[np.int8]
    unsure: int = 0

    def apply_to(self, labels: Labels) -> Labels:
        """Return the labels with the answers added."""
        return labels.with_entries(self.rows, self.columns, self.z)


def is_question_file(path: PathLike) -> bool:
    """Return whether the file is a table with the columns of a question file."""
    path = Path(path)
    return is_table(path) and set(COLUMNS) <= set(open_table(path).header)


def write_questions(
    path: PathLike, labels: Labels, rows: Positions, columns: Positions, scores: Mapping[str, npt.NDArray[Any]]
) -> None:
    """Write questions about these entries, in this order, with an empty column for the answers."""
    path = Path(path)
    check_suffix(path, SUFFIXES)
    items, names = [labels.id_at(i) for i in rows.tolist()], [labels.names[j] for j in columns]
    refuse_unwritable(items, names, path)
    table: dict[str, Any] = {"item": pa.array(items, pa.string()), "label": pa.array(names, pa.string())}
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
    """Read the yes and no answers to questions about these labels.

    Refused, with their lines: unknown items, labels and values; entries answered both yes and no; answers that
    contradict the labels or the hierarchy; and answers to questions that are not among `asked`.
    """
    table = _open(path)
    item, label, z = _cells(table)
    rows, columns = _rows(table, item, labels, asked), _positions(table, 1, label, labels.names)
    lines = np.flatnonzero((z == 1) | (z == -1))  # lines with a yes or a no
    answers = Answers(rows[lines], columns[lines], z[lines])
    flat = answers.rows * labels.shape[1] + answers.columns
    if asked is not None:
        unasked = lines[~np.isin(flat, asked[0] * labels.shape[1] + asked[1])]
        faults = Faults(table, "answers to questions that were not asked this time")
        faults.add(unasked, (f"{item[i]!r}, {label[i]!r}" for i in unasked))
        faults.refuse("Is this the file of another round? Leave these lines out.")
    _refuse_conflicts(table, lines, flat, answers.z)
    first = np.unique(flat, return_index=True)[1]  # a repeated answer counts once
    unsure = int((z == UNCERTAIN).sum())
    lines, answers = lines[first], Answers(answers.rows[first], answers.columns[first], answers.z[first], unsure)
    _refuse_contradictions(table, lines, answers, labels, hierarchy)
    return answers


def read_statements(path: PathLike) -> tuple[list[str], list[str], list[int | None]]:
    """Read items, labels and answers (1 yes, 0 no, None cannot tell) without checking them against labels."""
    item, label, z = _cells(_open(path))
    answered = np.flatnonzero(z).tolist()
    return (
        [item[i] for i in answered],
        [label[i] for i in answered],
        [None if z[i] == UNCERTAIN else int(z[i] == 1) for i in answered],
    )


def _open(path: PathLike) -> Table:
    table = open_table(check_file(path, SUFFIXES))
    missing = [name for name in COLUMNS if name not in table.header]
    if missing:
        raise DataError(
            f"{table.place(-1)}: a file of answers needs the columns {', '.join(COLUMNS)}; "
            f"missing: {', '.join(missing)}; found: {', '.join(table.header)}."
        )
    return table


def _cells(table: Table) -> tuple[list[str], list[str], npt.NDArray[np.int8]]:
    """Return item, label and answer of every line: +1, -1, UNCERTAIN for `cannot tell`, 0 for blank."""
    items: list[str] = []
    labels: list[str] = []
    answers = [np.empty(0, np.int8)]
    wrong = Faults(table, f"answers that are not 1 or yes, 0 or no, {CANNOT_TELL!r} or blank (not answered)")
    for batch in table.batches(COLUMNS):
        item, label, answer = batch.columns
        z = parse_ternary(answer, unsure=lambda cell: cell == CANNOT_TELL)
        bad = np.flatnonzero(z == INVALID)
        wrong.add(bad + len(items), (repr(answer[i].as_py()) for i in bad.tolist()))
        items += text_column(item, COLUMNS[0], table.path).to_pylist()
        labels += text_column(label, COLUMNS[1], table.path).to_pylist()
        answers.append(z)
    wrong.refuse("Leave unanswered questions blank.")
    return items, labels, np.concatenate(answers)


def _rows(table: Table, items: list[str], labels: Labels, asked: tuple[Positions, Positions] | None) -> Positions:
    """Return the position of each item; tries the items of the questions first, to avoid building all ids."""
    asked_rows = {labels.id_at(row): row for row in (() if asked is None else np.unique(asked[0]).tolist())}
    if all(item in asked_rows for item in items):
        return np.array([asked_rows[item] for item in items], np.int64)
    return _positions(table, 0, items, labels.ids)


def _positions(table: Table, column: int, names: list[str], known: Sequence[str]) -> Positions:
    """Return the position of each name among the known ones."""
    index = {name: i for i, name in enumerate(known)}
    positions = np.array([index.get(name, -1) for name in names], np.int64)
    unknown = np.flatnonzero(positions < 0)
    faults = Faults(table, f"{COLUMNS[column]}s that are not among the {len(known)} of the data")
    faults.add(unknown, (repr(names[i]) + did_you_mean(names[i], known[:1000]) for i in unknown))
    faults.refuse("Return the question file with answers and without other changes.")
    return positions


def _refuse_conflicts(table: Table, lines: Positions, flat: Positions, z: npt.NDArray[np.int8]) -> None:
    """Refuse entries that are answered both yes and no."""
    order = np.argsort(flat, kind="stable")
    before, after = order[:-1], order[1:]
    clash = (flat[before] == flat[after]) & (z[before] != z[after])
    faults = Faults(table, "entries that are answered both yes and no")
    places = (
        f"{_word(z[j])}, but {_word(z[i])} in {table.place(int(lines[i]))}"
        for i, j in zip(before[clash], after[clash], strict=True)
    )
    faults.add(lines[after[clash]], places)
    faults.refuse("Keep one of the two, or leave both blank.")


def _refuse_contradictions(
    table: Table, lines: Positions, answers: Answers, labels: Labels, hierarchy: Hierarchy | None
) -> None:
    """Refuse answers that contradict known labels or the hierarchy."""
    n, names = np.arange(len(lines)), labels.names
    known = labels.rows(answers.rows)[n, answers.columns]
    other = np.flatnonzero((known != 0) & (known != answers.z))
    faults = Faults(table, "answers that contradict what is known already")
    faults.add(lines[other], (f"{_word(answers.z[i])}, but known to be {_word(known[i])}" for i in other))
    faults.refuse("Leave these lines out, or correct the labels.")
    z = answers.apply_to(labels).rows(answers.rows)
    faults = Faults(table, "answers that contradict the hierarchy, a yes below a no")
    for child, parent in hierarchy.lines(names) if hierarchy else ():
        below = (answers.columns == child) & (answers.z == 1) & (z[:, parent] == -1)
        above = (answers.columns == parent) & (answers.z == -1) & (z[:, child] == 1)
        wrong = np.flatnonzero(below | above)
        faults.add(lines[wrong], [f"{names[child]!r} is yes and {names[parent]!r} is no"] * len(wrong))
    faults.refuse("Correct one of the two.")


def _word(z: int) -> str:
    return "yes" if z == 1 else "no"
