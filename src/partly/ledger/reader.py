"""Read history and statements of a ledger from its tables, and resolve them in blocks of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError, SettingError, did_you_mean
from partly.ledger.history import Batch, History, StatementRef, batch_of, replay
from partly.ledger.resolve import (
    RANKS,
    Entries,
    Floats,
    Ints,
    Statements,
    add_implied,
    concatenate_entries,
    resolve_entries,
)
from partly.ledger.store import BLOBS, STATEMENTS_PER_ROW, Store, digest_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

Source = tuple[str, str, str]  # kind, author and run
BLOCK_STATEMENTS = 1 << 22  # resolved at a time, about 50 bytes each
FETCH_ROWS = 256
BLOB_TYPES = dict(zip(BLOBS, ("<i4", "<i4", "i1", "<f4"), strict=True))


@dataclass(frozen=True)
class LedgerState:
    """A resolved state: its items, in the order of their first mention, and their entries."""

    history: History
    items: Ints  # numbers, sorted
    names: tuple[str, ...]
    entries: Entries

    def names_of(self, numbers: Ints) -> list[str]:
        return [self.names[i] for i in np.searchsorted(self.items, numbers).tolist()]

    def __contains__(self, number: int) -> bool:
        place = int(np.searchsorted(self.items, number))
        return place < len(self.items) and int(self.items[place]) == number

    @cached_property
    def visible_entries(self) -> Entries:
        """Known entries of the labels that are shown."""
        numbers = [label.number for label in self.history.vocabulary.visible_labels]
        keep = np.isin(self.entries.label, numbers) & (self.entries.z != 0)
        return self.entries[keep]


# ---------------------------------------------------------------- batches


def read_batches(store: Store, connection: Connection) -> list[Batch]:
    """Return all batches, in order."""
    batches = _select_batches(store, connection, store.sa.select(store.tables["batches"]))
    if [batch.number for batch in batches] != list(range(1, len(batches) + 1)):
        raise DataError(f"{store.place.address}: damaged, batches are missing. Restore a copy.")
    return batches


def read_vocabulary_history(store: Store, connection: Connection) -> History:
    """Return the batches that define the vocabulary: those that change it, and those that undo such a change.

    Writers need no others, and batches never change, so only new ones are read.
    """
    table, undos = store.tables["batches"], store.tables["taken_back"]
    last_read, history = store.known_structure or (0, replay([]))
    last = connection.execute(store.sa.select(store.sa.func.max(table.c.number))).scalar() or 0
    if last > last_read:
        query = store.sa.select(table).where(table.c.number > last_read)
        changing = set(connection.scalars(query.where(table.c.changes != "").with_only_columns(table.c.number)))
        known = {batch.number for batch in history.batches} | changing
        undoing = set()
        whole = store.sa.select(undos.c.batch, undos.c.taken).where(undos.c.batch > last_read, undos.c.item < 0)
        for batch, taken in connection.execute(whole.order_by(undos.c.batch)):
            if taken in known:
                undoing.add(batch)
                known.add(batch)
        if changing or undoing:
            new = _select_batches(
                store, connection, query.where((table.c.changes != "") | table.c.number.in_(undoing)), last_read
            )
            history = replay([*history.batches, *new])
        store.known_structure = last, history
    return history


def read_undone(store: Store, connection: Connection, after: int = 0) -> tuple[dict[int, int], set[int]]:
    """Return which batch undoes which, and the batches that are undone in part; by batches after this number."""
    undos = store.tables["taken_back"]
    query = store.sa.select(undos.c.batch, undos.c.taken, undos.c.item).where(undos.c.batch > after)
    whole: dict[int, int] = {}
    in_part = set()
    for batch, taken, item in connection.execute(query.order_by(undos.c.batch.desc())):
        if batch in whole:
            continue  # undone itself
        if item < 0:
            whole.setdefault(taken, batch)
        else:
            in_part.add(taken)
    return whole, in_part


def _select_batches(store: Store, connection: Connection, query: Any, after: int = 0) -> list[Batch]:
    """Return the batches of a query, in order, with the statements that they undo."""
    table, undos = store.tables["batches"], store.tables["taken_back"]
    rows = connection.execute(query.order_by(table.c.number)).all()
    taken: dict[int, list[StatementRef]] = {}
    undo_query = store.sa.select(undos).where(undos.c.batch > after).order_by(*undos.primary_key)
    for batch, *ref in connection.execute(undo_query) if rows else ():
        taken.setdefault(batch, []).append(tuple(ref))
    return [batch_of(row, taken) for row in rows]


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class StatementArrays:
    """Stored statements, arrays of shape [K]; confidence is NaN where none is given."""

    batch: Ints
    item: Ints
    label: Ints
    z: npt.NDArray[np.int8]
    confidence: npt.NDArray[np.float32]

    def __getitem__(self, index: Any) -> StatementArrays:
        return StatementArrays(*(getattr(self, part.name)[index] for part in fields(self)))


def read_statements(
    store: Store, connection: Connection, last: int, low: int, high: int, batch: int | None = None
) -> StatementArrays:
    """Return the statements of batches up to `last` about items from `low` to below `high`, in the order of batches."""
    pieces = list(iterate_statements(store, connection, last, low, high, batch))
    if not pieces:
        empty = np.empty(0, np.int64)
        return StatementArrays(empty, empty, empty, empty.astype(np.int8), empty.astype(np.float32))
    names = [part.name for part in fields(StatementArrays)]
    return StatementArrays(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))


def iterate_statements(
    store: Store, connection: Connection, last: int, low: int, high: int, batch: int | None
) -> Iterator[StatementArrays]:
    """Yield what `read_statements` returns in pieces."""
    table = store.tables["statements"]
    query = store.sa.select(table).where(table.c.batch <= last, table.c.first_item < high, table.c.last_item >= low)
    if batch is not None:
        query = query.where(table.c.batch == batch)
    query = query.order_by(table.c.batch, table.c.part).execution_options(yield_per=FETCH_ROWS)
    for rows in connection.execute(query).partitions():
        whole = _decode(store, rows)
        inside = (whole.item >= low) & (whole.item < high)
        yield whole if inside.all() else whole[inside]


def _decode(store: Store, rows: Sequence[Any]) -> StatementArrays:
    """Decode rows of the table `statements`, which another program may have written."""
    sizes = []
    for row in rows:
        if not all(isinstance(getattr(row, name), bytes | memoryview) for name in (*BLOBS, "digest")):
            raise DataError(f"{store.place.address}: damaged, batch {row.batch} holds no numbers. Restore a copy.")
        blobs = [bytes(getattr(row, name)) for name in BLOBS]
        count = len(blobs[2])
        whole = len(blobs[0]) == len(blobs[1]) == 4 * count and len(blobs[3]) in (0, 4 * count)
        if not whole or bytes(row.digest) != digest_of(row.batch, row.part, blobs):
            raise DataError(
                f"{store.place.address}: damaged, the checksum of batch {row.batch} does not match. Restore a copy."
            )
        sizes.append(count)
    item, label, z = (
        np.frombuffer(b"".join(getattr(row, name) for row in rows), BLOB_TYPES[name]) for name in BLOBS[:3]
    )
    low, high = (np.repeat([getattr(row, name) for row in rows], sizes) for name in ("first_item", "last_item"))
    if not (((z >= -1) & (z <= 1)).all() and (label >= -1).all() and ((item >= low) & (item <= high)).all()):
        raise DataError(
            f"{store.place.address}: damaged, statements of batches {rows[0].batch} to {rows[-1].batch} cannot be. "
            "Restore a copy."
        )
    missing = np.float32("nan")
    confidences = [
        np.frombuffer(row.confidences, "<f4") if row.confidences else np.full(count, missing)
        for row, count in zip(rows, sizes, strict=True)
    ]
    batch = np.repeat(np.array([row.batch for row in rows], np.int64), sizes)
    return StatementArrays(batch, item.astype(np.int64), label.astype(np.int64), z, np.concatenate(confidences))


def counts(statements: StatementArrays, history: History, kinds: Sequence[str] = tuple(RANKS)) -> npt.NDArray[np.bool_]:
    """Return a mask of the statements that are not undone and of these kinds."""
    batch_counts = np.zeros(history.last + 1, bool)
    for batch in history.batches:
        batch_counts[batch.number] = not batch.undone_by and batch.kind in kinds
    mask = batch_counts[statements.batch]
    for number, item, label in history.taken:
        mask &= (statements.batch != number) | (statements.item != item) | (statements.label != label)
    return mask


# ---------------------------------------------------------------- states


def resolve_state(
    store: Store,
    connection: Connection,
    history: History,
    policy: str,
    models: bool,
    source: Source | None = None,
    weights: Floats | None = None,
) -> LedgerState:
    """Resolve a state, of all sources or of one. Memory is bounded by the block, besides the entries themselves."""
    voices, voice, rank = number_voices(history)
    kinds = [kind for kind in RANKS if models or kind != "model"]
    labels = np.array(sorted(history.vocabulary.labels), np.int64)
    blocks, items = [], [np.empty(0, np.int64)]
    for low, high in _item_ranges(store, connection, history):
        read = read_statements(store, connection, history.last, low, high)
        read = read[counts(read, history, kinds)]
        if source is not None:
            read = read[voice[read.batch] == voices.get(source, -1)]
        mentioned = np.zeros(high - low, bool)
        mentioned[read.item - low] = True
        items.append(np.flatnonzero(mentioned) + low)
        read = read[np.isin(read.label, labels)]  # without label -1 and labels whose addition is undone
        statements = Statements(read.item, read.label, read.z, voice[read.batch], rank[read.batch])
        blocks.append(add_implied(resolve_entries(statements, policy, weights), history.vocabulary))
    numbers = np.concatenate(items)
    return LedgerState(history, numbers, _names(store, connection, numbers), concatenate_entries(blocks))


def number_voices(history: History) -> tuple[dict[Source, int], Ints, npt.NDArray[np.int8]]:
    """Return the number of each source, and for each batch the number of its source and its rank."""
    voices: dict[Source, int] = {}
    voice, rank = np.zeros(history.last + 1, np.int64), np.zeros(history.last + 1, np.int8)
    for batch in history.batches:
        voice[batch.number] = voices.setdefault(batch.source, len(voices))
        rank[batch.number] = RANKS[batch.kind]
    return voices, voice, rank


def statement_blocks(
    store: Store, connection: Connection, history: History, kinds: Sequence[str] = tuple(RANKS)
) -> Iterator[Statements]:
    """Yield the statements of these kinds that count, about labels that exist, in blocks of items."""
    _, voice, rank = number_voices(history)
    labels = np.array(sorted(history.vocabulary.labels), np.int64)
    for low, high in _item_ranges(store, connection, history):
        read = read_statements(store, connection, history.last, low, high)
        read = read[counts(read, history, kinds) & np.isin(read.label, labels)]
        yield Statements(read.item, read.label, read.z, voice[read.batch], rank[read.batch])


def _item_ranges(store: Store, connection: Connection, history: History) -> list[tuple[int, int]]:
    """Return ranges of items with about `BLOCK_STATEMENTS` statements each."""
    table, parts, sa = store.tables["items"], store.tables["statements"], store.sa
    first, last, count = connection.execute(
        sa.select(sa.func.min(table.c.number), sa.func.max(table.c.number), sa.func.count())
    ).one()
    mentioned, rows = connection.execute(sa.select(sa.func.max(parts.c.last_item), sa.func.count())).one()
    if (count and (first, last) != (0, count - 1)) or (mentioned is not None and mentioned >= count):
        raise DataError(f"{store.place.address}: damaged, items are missing or have other numbers. Restore a copy.")
    end = max(1, count)
    statements = min(sum(batch.count for batch in history.batches), rows * STATEMENTS_PER_ROW)
    passes = max(1, -(-statements // BLOCK_STATEMENTS))
    step = -(-end // min(passes, end))
    return [(low, min(low + step, end)) for low in range(0, end, step)]


def item_names(store: Store, connection: Connection) -> dict[int, str]:
    table = store.tables["items"]
    query = store.sa.select(table.c.number, table.c.name).execution_options(yield_per=1 << 14)
    return {number: name for part in connection.execute(query).partitions() for number, name in part}


def _names(store: Store, connection: Connection, numbers: Ints) -> tuple[str, ...]:
    known = item_names(store, connection)
    lost = [number for number in numbers.tolist() if number not in known]
    if lost or not set(map(type, known.values())) <= {str}:
        raise DataError(f"{store.place.address}: damaged, {len(lost) or 'some'} items have no name. Restore a copy.")
    return tuple(known[number] for number in numbers.tolist())


# ---------------------------------------------------------------- one item


def item_number(store: Store, connection: Connection, item: str) -> int:
    table = store.tables["items"]
    number = connection.execute(store.sa.select(table.c.number).where(table.c.name == item)).scalar()
    if number is None:
        names = connection.execute(store.sa.select(table.c.name).limit(1000)).scalars().all()
        raise SettingError(f"{store.place.address}: there is no statement about {item!r}.{did_you_mean(item, names)}")
    return int(number)


def statements_about(
    store: Store, connection: Connection, history: History, item: str
) -> list[tuple[Batch, int, int, float | None, bool]]:
    """Return (batch, label, z, confidence, counts) of every statement about an item."""
    number = item_number(store, connection, item)
    read = read_statements(store, connection, history.last, number, number + 1)
    read = read[read.label >= 0]
    columns = (read.batch, read.label, read.z, read.confidence, counts(read, history))
    by_number = {batch.number: batch for batch in history.batches}
    return [
        (by_number[int(batch)], int(label), int(z), None if np.isnan(confidence) else float(confidence), bool(is_valid))
        for batch, label, z, confidence, is_valid in zip(*columns, strict=True)
    ]


def statements_of(
    store: Store, connection: Connection, history: History, batch: int, item: str, label: str | None
) -> list[StatementRef]:
    """Return the statements of a batch about an item (and a label) that are not undone already."""
    number = item_number(store, connection, item)
    wanted = None if label is None else history.vocabulary.numbers([label])[0]
    last = max(batch, history.last)
    stated = read_statements(store, connection, last, number, number + 1, batch=batch).label.tolist()
    labels = [code for code in stated if wanted in (None, code) and (batch, number, code) not in history.taken]
    if not labels:
        pair = repr(item) if label is None else f"{item!r} and {label!r}"
        raise SettingError(f"Batch {batch} has no statement about {pair} that could be undone.")
    return [(batch, number, code) for code in labels]
