"""Ledger: append statements, undo them, and resolve them into Labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from partly.atomic_io import PathLike
from partly.errors import LabelError, SettingError
from partly.labels import Hierarchy, Labels
from partly.labels.names import check_names, encode_words
from partly.ledger import reader, reliability, writer
from partly.ledger.history import At, Batch, History, StatementRef, batches_up_to, check_source, check_text, replay
from partly.ledger.location import Place, check_policy, place_of
from partly.ledger.parsing import add_silent_items, map_labels, parse_confidence, parse_values, positions_of
from partly.ledger.reader import LedgerState
from partly.ledger.resolve import POLICIES
from partly.ledger.source_quality import SourceQuality
from partly.ledger.store import BoundStore, Store
from partly.ledger.vocabulary import Change, Vocabulary, refuse_taken_names
from partly.ledger.writer import Draft

VALUE_NAMES = {1: "yes", -1: "no", 0: "cannot tell"}
ENTRY_NAMES = {1: "yes", -1: "no", 0: "unknown"}


@dataclass(frozen=True)
class Statement:
    """A statement about an entry: yes, no or cannot tell. `counts`: it is not undone."""

    batch: Batch
    item: str
    label: str
    value: str
    confidence: float | None
    counts: bool


@dataclass(frozen=True)
class Difference:
    """An entry that differs between two states: yes, no or unknown; empty where the label does not exist."""

    item: str
    label: str
    before: str
    after: str


class Ledger:
    """An existing ledger: the path of a SQLite file, or postgresql://user@host/database. See `partly.ledger`.

    Parameters
    ----------
    url : str or Path
        Place of an existing ledger.

    Examples
    --------
    >>> import partly
    >>> ledger = partly.Ledger.create("labels.db", names=["cat", "dog"])
    >>> batch = ledger.append(["a.jpg"], ["cat"], [1], author="anna")
    >>> ledger.labels()
    Labels(1 items x 2 labels: 1 yes, 0 no, 50.0% unknown)
    >>> undone = ledger.undo(batch)
    >>> ledger.labels()
    Labels(0 items x 2 labels: 0 yes, 0 no, 100.0% unknown)
    """

    def __init__(self, url: PathLike | Place | Store) -> None:
        self.store = url if isinstance(url, Store) else Store(place_of(url))

    @classmethod
    def create(
        cls,
        url: PathLike | Place,
        names: Iterable[object] = (),
        hierarchy: Hierarchy | None = None,
        author: str = "partly",
    ) -> Self:
        """Create a ledger with these labels, if any."""
        names = check_names(names)
        with cls.create_atomically(url) as ledger:
            if names or hierarchy is not None:
                ledger.add(names, hierarchy, author=author)
        return ledger

    @classmethod
    @contextmanager
    def create_atomically(cls, url: PathLike | Place) -> Iterator[Self]:
        """Create a ledger together with everything that is appended within this context, or nothing at all."""
        store = Store(place_of(url), create=True)
        with store.creating() as connection:
            ledger = cls(BoundStore(store, connection))
            yield ledger
        ledger.store = store

    @classmethod
    def making(cls, url: PathLike | Place) -> AbstractContextManager[Self]:
        """Call `create_atomically`, the new name of this method."""
        warnings.warn("Ledger.making is now Ledger.create_atomically.", DeprecationWarning, stacklevel=2)
        return cls.create_atomically(url)

    def __repr__(self) -> str:
        return f"Ledger({self.store.place.address!r})"

    # ---------------------------------------------------------------- appending and undoing

    def append(
        self,
        items: Iterable[object],
        labels: Iterable[object],
        values: Iterable[Any],
        *,
        kind: str = "person",
        author: str = "",
        run: str = "",
        confidence: npt.ArrayLike | None = None,
        note: str = "",
        key: str | None = None,
        add_labels: bool = False,
        skip_repeated: bool = False,
    ) -> int:
        """Append statements (item, label, value) and return the number of their batch.

        A value is 1 or True (yes), 0 or False (no), None or NaN (cannot tell). A batch names each entry once.
        `add_labels`: add unknown label names to the vocabulary first, instead of refusing them. `skip_repeated`: if the
        last batch of the same source states exactly the same, append nothing and return its number.
        """
        item_names, item = encode_words(items, None, "item")
        label_names, label = encode_words(labels, None, "label")
        z = parse_values(values)
        if not len(item) == len(label) == len(z):
            raise LabelError(f"{len(item)} items, {len(label)} labels and {len(z)} values: give as many of each.")
        parsed = parse_confidence(confidence, len(z))
        draft = Draft(kind, author, run, note, key, item_names, label_names, item, label, z, parsed)
        return self._append(draft, add_labels, skip_repeated)

    def append_labels(
        self,
        labels: Labels,
        *,
        kind: str = "import",
        author: str = "",
        run: str = "",
        note: str = "",
        key: str | None = None,
        add_labels: bool = False,
        mapping: Mapping[str, str] | None = None,
        skip_repeated: bool = False,
    ) -> int:
        """Append all known entries of `labels`, and record that their items exist.

        `mapping`: from their label names to those of the vocabulary. If several become one, a yes of any is a yes,
        and a no needs a no of all. `skip_repeated`: as in `append`.
        """
        row, column, value = labels.entries()
        z = np.where(value == 1, 1, -1).astype(np.int8)
        names, entries = map_labels((row, column, z), labels.names, mapping or {})
        draft = Draft(kind, author, run, note, key, labels.ids, names, *add_silent_items(len(labels), entries))
        return self._append(draft, add_labels, skip_repeated)

    def append_ledger(
        self,
        other: Ledger,
        *,
        mapping: Mapping[str, str] | None = None,
        add_labels: bool = False,
        skip_repeated: bool = False,
    ) -> list[int]:
        """Append the current statements of another ledger, one batch per source; sources keep their names.

        `mapping` and `skip_repeated`: as in `append_labels`.
        """
        history = other._history(None)
        last_batch = {batch.source: batch.number for batch in history.batches if batch.count and not batch.undone_by}
        numbers = []
        for source in sorted(last_batch, key=lambda source: last_batch[source]):
            with other.store.reading() as connection:
                state = reader.resolve_state(other.store, connection, history, "latest", True, source)
            entries = state.entries
            column = positions_of([label.number for label in history.vocabulary.visible_labels], entries.label)
            inside, row = column >= 0, np.searchsorted(state.items, entries.item)
            arrays = (row[inside], column[inside], entries.z[inside])
            names, arrays = map_labels(arrays, history.vocabulary.names, mapping or {})
            note, arrays = f"from {other.store.place.address}", add_silent_items(len(state.names), arrays)
            draft = Draft(*source, note, None, state.names, names, *arrays)
            numbers.append(self._append(draft, add_labels, skip_repeated))
        return numbers

    def _append(self, draft: Draft, add_labels: bool, skip_repeated: bool) -> int:
        check_source(draft.kind, draft.author, draft.run)
        check_text("author, run, note or key", [draft.author, draft.run, draft.note, draft.key or ""])
        check_text("items", draft.items)
        check_text("labels", draft.labels)
        with self.store.writing() as connection:
            history = reader.read_vocabulary_history(self.store, connection)
            existing = writer.find_by_key(self.store, connection, history.vocabulary, draft)
            if existing is None and skip_repeated:
                existing = writer.find_repeated(self.store, connection, history, draft)
            if existing is not None:
                return existing
            if add_labels and (new := [name for name in draft.labels if name not in history.vocabulary.names]):
                refuse_taken_names(history.vocabulary, new)
                change = Change("add", (), tuple(enumerate(new, writer.next_label(history))))
                labels_draft = Draft(draft.kind, draft.author, draft.run, "labels of the next batch")
                writer.write(self.store, connection, history, labels_draft, (change,))
                history = reader.read_vocabulary_history(self.store, connection)
            return writer.write(self.store, connection, history, draft)

    def undo(
        self,
        batch: int | None = None,
        *,
        item: str | None = None,
        label: str | None = None,
        kind: str | None = None,
        author: str | None = None,
        run: str | None = None,
        by: str = "partly",
        note: str = "",
    ) -> int:
        """Undo a batch, its statements about an item (and a label), or everything that a source has stated.

        Nothing is erased: the undo is a batch too, and undoing it restores the statements.
        """
        check_source("person", by, "")
        check_text("by or note", [by, note])
        with self.store.writing() as connection:
            if batch is not None and item is label is kind is author is run is None:
                history = reader.read_vocabulary_history(self.store, connection)
                taken: list[StatementRef] = [(self._check_not_undone(connection, batch), -1, -1)]
            else:
                history = replay(reader.read_batches(self.store, connection))
                numbers = _select_batches(history.batches, batch, {"kind": kind, "author": author, "run": run})
                taken = [(number, -1, -1) for number in numbers]
            if item is not None or label is not None:
                if batch is None or item is None:
                    raise SettingError("Name a statement by its batch, its item and, if there are several, its label.")
                taken = reader.statements_of(self.store, connection, history, batch, item, label)
            draft = Draft("person", by, "", note, taken=tuple(taken))
            return writer.write(self.store, connection, history, draft)

    def _check_not_undone(self, connection: Any, number: int) -> int:
        """Return the number of a batch that is not undone, without reading all batches."""
        table = self.store.tables["batches"]
        last = connection.scalar(self.store.sa.select(self.store.sa.func.max(table.c.number))) or 0
        _refuse_undone(number, last, lambda: reader.read_undone(self.store, connection, number)[0].get(number, 0))
        return number

    # ---------------------------------------------------------------- reading

    def labels(self, at: At = None, *, policy: str = "latest", models: bool = False) -> Labels:
        """Return the current labels.

        Parameters
        ----------
        at : int, str or datetime, optional
            State after this batch, or at this time.
        policy : str
            How statements of several people are resolved: "latest", "majority" or "weighted" (see
            `partly.ledger.resolve`).
        models : bool
            Let statements of models count where there is no other.
        """
        state = self.resolve(at, policy=policy, models=models)
        shown, entries = state.history.vocabulary.visible_labels, state.visible_entries
        row, value = np.searchsorted(state.items, entries.item), (entries.z == 1).astype(np.int8)
        column = positions_of([label.number for label in shown], entries.label)
        return Labels.from_codes(row, column, value, [label.name for label in shown], state.names)

    def resolve(self, at: At = None, *, policy: str = "latest", models: bool = False) -> LedgerState:
        """Return what `labels` is made from: with hidden labels, ranks, and conflicting entries."""
        check_policy(policy, POLICIES)
        with self.store.reading() as connection:
            history = replay(batches_up_to(reader.read_batches(self.store, connection), at, self.store.place.address))
            weights = None
            if policy == "weighted":
                weights = reliability.estimate_weights(self.store, connection, history, models)
            return reader.resolve_state(self.store, connection, history, policy, models, weights=weights)

    def source_quality(self, at: At = None) -> list[SourceQuality]:
        """Return how reliable each source is, by its agreement with others; empty where too little is shared.

        The sources are compared on entries that several of them have answered, by EM (see
        `partly.ledger.source_quality`).
        """
        with self.store.reading() as connection:
            history = replay(batches_up_to(reader.read_batches(self.store, connection), at, self.store.place.address))
            return reliability.describe_sources(self.store, connection, history)

    def unaudited(self, at: At = None) -> list[reliability.Unaudited]:
        """Return the batches of language models of which people have answered too few entries."""
        with self.store.reading() as connection:
            history = replay(batches_up_to(reader.read_batches(self.store, connection), at, self.store.place.address))
            return reliability.find_unaudited(self.store, connection, history)

    def folded(self, at: At = None, *, policy: str = "latest", models: bool = False) -> LedgerState:
        """Call `resolve`, the new name of this method."""
        warnings.warn("Ledger.folded is now Ledger.resolve.", DeprecationWarning, stacklevel=2)
        return self.resolve(at, policy=policy, models=models)

    def vocabulary(self, at: At = None) -> Vocabulary:
        """Return all labels, with their history."""
        return self._history(at).vocabulary

    def hierarchy(self, at: At = None) -> Hierarchy | None:
        """Return the hierarchy that splits and parents define, or None."""
        return self.vocabulary(at).hierarchy()

    def log(self, at: At = None) -> list[Batch]:
        """Return every batch in order; `undone_by` names the batch that undoes one."""
        return list(self._history(at).batches)

    def _history(self, at: At) -> History:
        with self.store.reading() as connection:
            batches = reader.read_batches(self.store, connection)
        return replay(batches_up_to(batches, at, self.store.place.address))

    def show(self, item: str, at: At = None) -> list[Statement]:
        """Return every statement about an item, in order."""
        with self.store.reading() as connection:
            history = replay(batches_up_to(reader.read_batches(self.store, connection), at, self.store.place.address))
            rows = reader.statements_about(self.store, connection, history, item)
        labels = history.vocabulary.labels
        return [
            Statement(
                batch,
                item,
                labels[number].name if number in labels else f"label {number}",
                VALUE_NAMES[z],
                confidence,
                counts,
            )
            for batch, number, z, confidence, counts in rows
        ]

    def diff(self, before: At, after: At = None, *, policy: str = "latest", models: bool = True) -> list[Difference]:
        """Return the entries that differ between two states, under the label names of the later state."""
        earlier, later = (self.resolve(at, policy=policy, models=models) for at in (before, after))
        return list(_differences(earlier, later))

    def disagreements(self, at: At = None, *, models: bool = False) -> list[tuple[str, str]]:
        """Return (item, label) of conflicting entries: sources differ, or the entry contradicts another one."""
        state = self.resolve(at, models=models)
        labels, conflicting = state.history.vocabulary.labels, np.flatnonzero(state.entries.conflicting)
        items = state.names_of(state.entries.item[conflicting])
        numbers = state.entries.label[conflicting].tolist()
        return [(item, labels[number].name) for item, number in zip(items, numbers, strict=True) if number in labels]

    # ---------------------------------------------------------------- the vocabulary

    def add(
        self,
        names: Iterable[object],
        hierarchy: Hierarchy | None = None,
        *,
        parent: str | None = None,
        author: str = "partly",
    ) -> int:
        """Add labels, unknown everywhere: below `parent`, or as in a hierarchy."""
        names = check_names(names)
        return self._change(lambda current, free: current.additions(names, free, hierarchy, parent), author)

    def split(self, label: str, into: Iterable[object], *, author: str = "partly") -> int:
        """Split a label into parts below it. Where it is no the parts are no; elsewhere they are unknown."""
        names = check_names(into)

        def changes(current: Vocabulary, free: int) -> list[Change]:
            if not names:
                raise LabelError(f"split: into what? {label!r} needs one part or more.")
            refuse_taken_names(current, names)
            return [Change("split", tuple(current.numbers([label])), tuple(enumerate(names, free)))]

        return self._change(changes, author)

    def merge(self, labels: Iterable[str], name: str, *, author: str = "partly") -> int:
        """Merge labels into one and hide them: a yes of any is a yes, a no needs a no of all."""
        labels = list(labels)

        def changes(current: Vocabulary, free: int) -> list[Change]:
            refuse_taken_names(current, check_names([name]), ignore=labels)
            return [current.merge(current.numbers(labels), free, name)]

        return self._change(changes, author)

    def rename(self, label: str, name: str, *, author: str = "partly") -> int:
        """Rename a label; its statements stay."""

        def changes(current: Vocabulary, free: int) -> list[Change]:
            refuse_taken_names(current, check_names([name]), ignore=[label])
            (number,) = current.numbers([label])
            return [Change("rename", (number,), ((number, name),))]

        return self._change(changes, author)

    def retire(self, labels: Iterable[str], *, author: str = "partly") -> int:
        """Hide labels. Their statements stay, and what follows from them still counts."""
        labels = list(labels)
        return self._change(lambda current, _: [Change("retire", tuple(current.numbers(labels)))], author)

    def _change(self, make_changes: Callable[[Vocabulary, int], Sequence[Change]], author: str) -> int:
        check_source("person", author, "")
        with self.store.writing() as connection:
            history = reader.read_vocabulary_history(self.store, connection)
            changes = tuple(make_changes(history.vocabulary, writer.next_label(history)))
            check_text("author and labels", [author, *(name for change in changes for _, name in change.new)])
            return writer.write(self.store, connection, history, Draft("person", author), changes)


def _select_batches(batches: Sequence[Batch], number: int | None, source: Mapping[str, str | None]) -> list[int]:
    """Return the batches to undo; refuse an empty selection."""
    criteria = {name: value for name, value in source.items() if value is not None}
    if (number is None) == (not criteria):
        raise SettingError("Say what to undo: the number of a batch, or a source (kind, author, run).")
    if number is None:
        matching = [
            batch.number
            for batch in batches
            if not batch.undone_by
            and batch.count
            and all(getattr(batch, name) == value for name, value in criteria.items())
        ]
        if not matching:
            described = ", ".join(f"{name} {value!r}" for name, value in criteria.items())
            raise SettingError(f"There is no statement that counts by {described}.")
        return matching
    _refuse_undone(number, len(batches), lambda: batches[number - 1].undone_by)
    return [number]


def _refuse_undone(number: int, last: int, undone_by: Callable[[], int]) -> None:
    """Refuse to undo a batch that does not exist or is undone already."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= last:
        raise SettingError(f"There is no batch {number!r}: they go from 1 to {last}.")
    if by := undone_by():
        raise SettingError(f"Batch {number} is undone already, by batch {by}. To restore it, undo batch {by}.")


def _differences(before: LedgerState, after: LedgerState) -> Iterable[Difference]:
    """Compare by label number, so that a renamed label stays the same label."""
    states = (before, after)
    width = 1 + max((number for state in states for number in state.history.vocabulary.labels), default=0)
    keys = [
        state.visible_entries.item * width + state.visible_entries.label for state in states
    ]  # sorted: entries are in reading order
    union = np.union1d(*keys)
    z = [np.zeros(len(union), np.int8) for _ in states]
    for values, key, state in zip(z, keys, states, strict=True):
        values[np.searchsorted(union, key)] = state.visible_entries.z
    names = [{label.number: label.name for label in state.history.vocabulary.visible_labels} for state in states]
    for i in np.flatnonzero(z[0] != z[1]).tolist():
        item, label = divmod(int(union[i]), width)
        was, now = (
            "" if label not in shown else ENTRY_NAMES[int(values[i])] for values, shown in zip(z, names, strict=True)
        )
        name = (after if item in after else before).names_of(np.array([item]))[0]
        yield Difference(name, names[1].get(label) or names[0][label], was, now)
