"""The reliability of the sources of a ledger: weights for the policy "weighted", and audits of language models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from partly.ledger import reader, source_quality
from partly.ledger.history import Batch, History
from partly.ledger.resolve import PERSON, RANKS, Floats, Ints, Statements
from partly.ledger.source_quality import Confusions, SourceQuality
from partly.ledger.store import Store
from partly.ledger.writer import MAX_NUMBER

if TYPE_CHECKING:
    from sqlalchemy import Connection

MIN_AUDITED = 30  # answered by people, before a language model's batch may be used for training


@dataclass(frozen=True)
class Unaudited:
    """A batch of a language model with too few entries that people have answered."""

    batch: Batch
    answered: int
    needed: int

    @property
    def words(self) -> str:
        return (
            f"batch {self.batch.number}, {self.batch.author or self.batch.run}: people have answered {self.answered} "
            f"of its entries, {self.needed} are needed"
        )


def estimate_weights(store: Store, connection: Connection, history: History, models: bool) -> Floats | None:
    """Return votes [voices, labels, 2] for the policy "weighted"; None if sources share too few entries."""
    kinds = [kind for kind in RANKS if models or kind != "model"]
    shared, entry, _ = _collect(store, connection, history, kinds)
    voices, confusions = _fit(shared, entry, _label_count(history))
    if confusions is None:
        return None
    # A source without shared entries votes by the prior.
    unknown = np.log(source_quality.PRIOR[0, :2] / source_quality.PRIOR[1, :2])
    weights = np.tile(unknown, (len(reader.number_voices(history)[0]), _label_count(history), 1))
    weights[voices] = confusions.weights
    return weights


def describe_sources(store: Store, connection: Connection, history: History) -> list[SourceQuality]:
    """Return the quality of the sources that share entries with others; empty if they share too few."""
    shared, entry, counts = _collect(store, connection, history, tuple(RANKS))
    voices, confusions = _fit(shared, entry, _label_count(history))
    if confusions is None:
        return []
    sources = list(reader.number_voices(history)[0])
    names = {label.number: label.name for label in history.vocabulary.visible_labels}
    renumbered = _renumber(shared, voices)
    return source_quality.describe(confusions, renumbered, [sources[k] for k in voices], counts[voices], names)


def find_unaudited(store: Store, connection: Connection, history: History) -> list[Unaudited]:
    """Return the batches of language models with too few entries that people have answered with yes or no."""
    batches = [batch for batch in history.batches if batch.of_language_model and batch.count and not batch.undone_by]
    if not batches:
        return []
    width = _label_count(history)
    keys = [
        part.item[answered] * width + part.label[answered]
        for part in reader.statement_blocks(store, connection, history, ["person"])
        for answered in [part.z != 0]
    ]
    people = np.unique(np.concatenate([*keys, np.empty(0, np.int64)]))
    unaudited = []
    for batch in batches:
        statements = reader.read_statements(store, connection, batch.number, 0, MAX_NUMBER, batch=batch.number)
        statements = statements[(statements.label >= 0) & (statements.z != 0)]
        answered = int(np.isin(statements.item * width + statements.label, people).sum())
        needed = min(MIN_AUDITED, len(statements.z))
        if answered < needed:
            unaudited.append(Unaudited(batch, answered, needed))
    return unaudited


@dataclass(frozen=True)
class Contradiction:
    """An entry where language models contradict what people agree on (z); `models`: their names and z."""

    item: int
    label: int
    z: int
    models: tuple[tuple[str, int], ...]


def find_contradictions(store: Store, connection: Connection, history: History) -> list[Contradiction]:
    """Return the entries about which people and language models contradict each other, in reading order."""
    voices, _, _ = reader.number_voices(history)
    models = {voices[batch.source]: batch.author or batch.run for batch in history.batches if batch.of_language_model}
    if not models:
        return []
    return [
        found
        for part in reader.statement_blocks(store, connection, history, ["person", "model"])
        for found in _contradictions(*source_quality.select_shared(part), models)
    ]


def _contradictions(shared: Statements, entry: Ints, models: dict[int, str]) -> Iterator[Contradiction]:
    of_person, of_model = shared.rank == PERSON, np.isin(shared.voice, list(models))
    size = int(entry.max(initial=-1)) + 1
    yes, no = ([np.bincount(entry, who & (shared.z == z), size) > 0 for who in (of_person, of_model)] for z in (1, -1))
    differ = (yes[0] & ~no[0] & no[1]) | (no[0] & ~yes[0] & yes[1])
    differing = np.flatnonzero(differ[entry])
    for k in np.unique(entry[differing]).tolist():
        own_lines = differing[entry[differing] == k]
        statements = [
            (models[int(shared.voice[i])], int(shared.z[i])) for i in own_lines if of_model[i] and shared.z[i]
        ]
        first = own_lines[0]
        yield Contradiction(
            int(shared.item[first]), int(shared.label[first]), 1 if yes[0][k] else -1, tuple(statements)
        )


def _collect(
    store: Store, connection: Connection, history: History, kinds: Sequence[str]
) -> tuple[Statements, Ints, Ints]:
    """Return the statements about shared entries, their entry numbers, and the number of statements per voice."""
    counts = np.zeros(len(reader.number_voices(history)[0]), np.int64)
    parts, entries, offset = [], [], 0
    for block in reader.statement_blocks(store, connection, history, kinds):
        counts += np.bincount(block.voice, minlength=len(counts))
        shared, entry = source_quality.select_shared(block)
        parts.append(shared)
        entries.append(entry + offset)
        offset += int(entry.max(initial=-1)) + 1
    joined = Statements(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))
    return joined, np.concatenate(entries), counts


def _fit(shared: Statements, entry: Ints, labels: int) -> tuple[Ints, Confusions | None]:
    """Return the voices that share entries, and their confusions."""
    voices = np.unique(shared.voice)
    return voices, source_quality.fit(_renumber(shared, voices), entry, len(voices), labels)


def _renumber(statements: Statements, voices: Ints) -> Statements:
    part = vars(statements) | {"voice": np.searchsorted(voices, statements.voice)}
    return Statements(**part)


def _label_count(history: History) -> int:
    return max(history.vocabulary.labels, default=-1) + 1
