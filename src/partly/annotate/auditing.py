"""Audit entries that models have filled in: an upper bound on the share that is wrong.

The entries of a batch are asked in a random order that is fixed once, mixed with all other questions, so annotators
cannot recognize them. Only the beginning of that order counts, up to the first entry without an answer: it is a random
sample, whatever else was asked. The bound is sequential, so it holds whenever it is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.annotate.label_state import Answer
from partly.annotate.question_queue import QuestionQueue
from partly.clock import seed_for
from partly.completion.bounds import SequentialTest
from partly.ledger import reader
from partly.ledger.writer import MAX_NUMBER

RISK = 0.05  # probability that a bound is too low
Entry = tuple[int, int]


@dataclass(frozen=True)
class ModelBatch:
    """A ledger batch of a model: its entries (row, column, z) in the order of asking."""

    batch: int
    run: str
    note: str
    entries: Sequence[Answer]
    author: str = ""


@dataclass(frozen=True)
class AuditResult:
    """Entries that people could judge, how many of them were wrong, and the bound on the share of wrong entries."""

    audited: ModelBatch
    judged: int
    wrong: int
    max_share: float

    @property
    def words(self) -> str:
        if not self.judged:
            return "not audited yet"
        share, confidence = 100 * self.max_share, 100 * (1 - RISK)
        return (
            f"{self.wrong} of {self.judged} audited entries are wrong; at most {share:.0f} % of all entries "
            f"({confidence:.0f} % confidence)"
        )


def read_model_batches(queue: QuestionQueue, seed: int) -> list[ModelBatch]:
    """Return the batches of models that are not undone, restricted to the items and labels of the project.

    Where a model cannot tell, there is nothing to audit.
    """
    store = queue.ledger.store
    batches = [batch for batch in queue.ledger.log() if batch.kind == "model" and batch.count and not batch.undone_by]
    if not batches:
        return []
    with store.reading() as connection:
        names = reader.item_names(store, connection)
        statements = [
            reader.read_statements(store, connection, batch.number, 0, MAX_NUMBER, batch=batch.number)
            for batch in batches
        ]
    rows = {number: queue.rows[name] for number, name in names.items() if name in queue.rows}
    labels = queue.ledger.vocabulary().labels
    columns = {number: queue.columns[label.name] for number, label in labels.items() if label.name in queue.columns}
    model_batches = []
    for batch, said in zip(batches, statements, strict=True):
        triples = zip(said.item.tolist(), said.label.tolist(), said.z.tolist(), strict=True)
        inside = [(item, label, z) for item, label, z in triples if z and item in rows and label in columns]
        entries = [(rows[item], columns[label], z) for item, label, z in inside]
        order = np.random.default_rng(seed_for(seed, "audit", batch.number)).permutation(len(entries))
        shuffled = [entries[k] for k in order.tolist()]
        model_batches.append(ModelBatch(batch.number, batch.run, batch.note, shuffled, batch.author))
    return model_batches


def next_audits(batches: Iterable[ModelBatch], answers: Iterable[Answer], count: int) -> list[Entry]:
    """Return up to `count` entries to ask next, taking turns between the batches."""
    answered = {(row, column) for row, column, _ in answers}
    queues = [
        [(row, column) for row, column, _ in batch.entries if (row, column) not in answered][:count]
        for batch in batches
    ]
    turns = (queue[place] for place in range(count) for queue in queues if place < len(queue))
    return list(dict.fromkeys(turns))[:count]


def audit(batch: ModelBatch, answers: Iterable[Answer], risk: float = RISK) -> AuditResult:
    """Compare a batch with the answers so far. Entries that people cannot tell are left out."""
    values = {(row, column): z for row, column, z in answers}
    errors: list[bool] = []
    population = len(batch.entries)
    for row, column, z in batch.entries:
        if (row, column) not in values:
            break
        if values[row, column]:
            errors.append(values[row, column] != z)
        else:
            population -= 1
    return AuditResult(batch, len(errors), sum(errors), _max_share(np.array(errors, bool), population, risk))


def _max_share(errors: npt.NDArray[np.bool_], population: int, risk: float) -> float:
    """Return the largest share of errors that the sequential test does not reject, by bisection."""
    low, high = int(errors.sum()), population
    while low < high:
        middle = (low + high + 1) // 2
        if SequentialTest.of(errors, population, middle).log >= -math.log(risk):
            high = middle - 1
        else:
            low = middle
    return low / population if population else 0.0
