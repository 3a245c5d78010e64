"""Audit of what models have filled in: how much of it is wrong, at most, by what people say who are asked about some.

The entries of a batch are asked in an order that is drawn once, mixed with all other questions, so that nobody knows
which they are. Only the beginning of that order counts, up to the first entry without an answer, however many others
somebody happened to be asked about: it is a sample by chance. The bound may be looked at after every answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.annotate.label_state import Answer
from partly.annotate.question_queue import Desk
from partly.clock import seed_for
from partly.completion.bounds import SequentialTest
from partly.ledger import reader
from partly.ledger.writer import MOST

RISK = 0.05  # that a bound is too low
Entry = tuple[int, int]


@dataclass(frozen=True)
class Filled:
    """A batch of a model: its entries (row, column, z) in the order of asking."""

    batch: int
    run: str
    note: str
    entries: Sequence[Answer]


@dataclass(frozen=True)
class Audited:
    """drawn: entries that somebody could judge; wrong: how many of these; most: the share that is wrong, at most."""

    filled: Filled
    drawn: int
    wrong: int
    most: float

    @property
    def words(self) -> str:
        if not self.drawn:
            return "nobody was asked about it yet"
        return (
            f"people were asked about {self.drawn} of them and {self.wrong} were wrong: at most {self.most:.0%} of all "
            f"({1 - RISK:.0%} sure)"
        )


def filled(desk: Desk, seed: int) -> list[Filled]:
    """Every batch of a model that is not taken back, of the items and labels that are asked about."""
    store = desk.ledger.store
    batches = [one for one in desk.ledger.log() if one.kind == "model" and one.count and not one.undone_by]
    if not batches:
        return []
    with store.reading() as connection:
        names = reader.item_names(store, connection)
        said = [reader.rows(store, connection, one.number, 0, MOST, batch=one.number) for one in batches]
    rows = {number: desk.rows[name] for number, name in names.items() if name in desk.rows}
    labels = desk.ledger.vocabulary().labels
    columns = {number: desk.columns[one.name] for number, one in labels.items() if one.name in desk.columns}
    found = []
    for one, each in zip(batches, said, strict=True):
        pairs = zip(each.item.tolist(), each.label.tolist(), each.z.tolist(), strict=True)
        entries = [(rows[item], columns[label], z) for item, label, z in pairs if item in rows and label in columns]
        order = np.random.default_rng(seed_for(seed, "audit", one.number)).permutation(len(entries))
        found.append(Filled(one.number, one.run, one.note, [entries[k] for k in order.tolist()]))
    return found


def due(batches: Iterable[Filled], answers: Iterable[Answer], count: int) -> list[Entry]:
    """At most so many entries to ask about next, by turns of each batch."""
    said = {(row, column) for row, column, _ in answers}
    queues = [[(row, column) for row, column, _ in one.entries if (row, column) not in said][:count] for one in batches]
    turns = (queue[place] for place in range(count) for queue in queues if place < len(queue))
    return list(dict.fromkeys(turns))[:count]


def audited(one: Filled, answers: Iterable[Answer], risk: float = RISK) -> Audited:
    """What the answers say so far. Whom nobody could judge is left out."""
    said = {(row, column): z for row, column, z in answers}
    errors: list[bool] = []
    left = len(one.entries)
    for row, column, z in one.entries:
        if (row, column) not in said:
            break
        if said[row, column]:
            errors.append(said[row, column] != z)
        else:
            left -= 1
    return Audited(one, len(errors), sum(errors), _most(np.array(errors, bool), left, risk))


def _most(errors: npt.NDArray[np.bool_], zone: int, risk: float) -> float:
    """The smallest share that is ruled out; all that is wrong for sure is found where everybody was asked."""
    low, high = int(errors.sum()), zone  # low is possible; above high nothing is
    while low < high:
        middle = (low + high + 1) // 2
        if SequentialTest.of(errors, zone, middle).log >= -math.log(risk):
            high = middle - 1
        else:
            low = middle
    return low / zone if zone else 0.0
