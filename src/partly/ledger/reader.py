"""From the tables of a ledger to its history, its statements and their fold; block by block of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError, SettingError, did_you_mean
from partly.ledger.history import Batch, History, Taken, batch_of, replayed
from partly.ledger.resolve import RANKS, Entries, Ints, Statements, consequences, fold
from partly.ledger.store import BLOBS, PART, Store, digest_of

if TYPE_CHECKING:
    from sqlalchemy import Connection

BLOCK = 1 << 22  # statements that are folded at a time, about: 50 bytes each
ROWS = 256  # of statements, fetched at a time
TYPES = dict(zip(BLOBS, ("<i4", "<i4", "i1", "<f4"), strict=True))


@dataclass(frozen=True)
class Folded:
    """A state: its items, in the order in which they came, and their entries."""

    history: History
    items: Ints  # numbers, sorted
    names: tuple[str, ...]
    entries: Entries

    def names_of(self, numbers: Ints) -> list[str]:
        return [self.names[i] for i in np.searchsorted(self.items, numbers).tolist()]

    def __contains__(self, number: int) -> bool:
        at = int(np.searchsorted(self.items, number))
        return at < len(self.items) and int(self.items[at]) == number

    @cached_property
    def shown(self) -> Entries:
        """Entries of labels that are shown, and known."""
        numbers = [one.number for one in self.history.vocabulary.shown]
        keep = np.isin(self.entries.label, numbers) & (self.entries.z != 0)
        return Entries(*(part[keep] for part in vars(self.entries).values()))


# ---------------------------------------------------------------- batches


def batches(store: Store, connection: Connection) -> list[Batch]:
    """All, in order."""
    table = store.tables["batches"]
    found = _batches(store, connection, store.sa.select(table))
    if [one.number for one in found] != list(range(1, len(found) + 1)):
        raise DataError(f"{store.place.shown}: damaged, batches are missing. Restore a copy.")
    return found


def structure(store: Store, connection: Connection) -> History:
    """Return the batches that decide the vocabulary: those that change it, and those that take back such a one. Writers
    need no more, whatever a million answers and undos say. Batches never change, so only new ones are looked at."""
    table, undos = store.tables["batches"], store.tables["taken_back"]
    seen, history = store.known_structure or (0, replayed([]))
    last = connection.execute(store.sa.select(store.sa.func.max(table.c.number))).scalar() or 0
    if last > seen:
        query = store.sa.select(table).where(table.c.number > seen)
        changing = set(connection.scalars(query.where(table.c.changes != "").with_only_columns(table.c.number)))
        known = {one.number for one in history.batches} | changing
        undoing = set()
        whole = store.sa.select(undos.c.batch, undos.c.taken).where(undos.c.batch > seen, undos.c.item < 0)
        for batch, taken in connection.execute(whole.order_by(undos.c.batch)):
            if taken in known:
                undoing.add(batch)
                known.add(batch)
        if changing or undoing:
            new = _batches(store, connection, query.where((table.c.changes != "") | table.c.number.in_(undoing)), seen)
            history = replayed([*history.batches, *new])
        store.known_structure = last, history
    return history


def undone(store: Store, connection: Connection, after: int = 0) -> tuple[dict[int, int], set[int]]:
    """Return by which batch others are taken back, and which are taken back in part; by batches after this number."""
    undos = store.tables["taken_back"]
    query = store.sa.select(undos.c.batch, undos.c.taken, undos.c.item).where(undos.c.batch > after)
    whole: dict[int, int] = {}
    partly = set()
    for batch, taken, item in connection.execute(query.order_by(undos.c.batch.desc())):
        if batch in whole:
            continue  # it is taken back itself
        if item < 0:
            whole.setdefault(taken, batch)
        else:
            partly.add(taken)
    return whole, partly


def _batches(store: Store, connection: Connection, query: Any, after: int = 0) -> list[Batch]:
    """Those of a query, in order, with what they take back."""
    table, undos = store.tables["batches"], store.tables["taken_back"]
    found = connection.execute(query.order_by(table.c.number)).all()
    taken: dict[int, list[Taken]] = {}
    which = store.sa.select(undos).where(undos.c.batch > after).order_by(*undos.primary_key)
    for batch, *what in connection.execute(which) if found else ():
        taken.setdefault(batch, []).append(tuple(what))
    return [batch_of(row, taken) for row in found]


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Rows:
    """Statements as they are stored, [K] each; confidence is NaN where nothing is said of it."""

    batch: Ints
    item: Ints
    label: Ints
    z: npt.NDArray[np.int8]
    confidence: npt.NDArray[np.float32]

    def __getitem__(self, index: Any) -> Rows:
        return Rows(*(getattr(self, one.name)[index] for one in fields(self)))


def rows(store: Store, connection: Connection, last: int, low: int, high: int, batch: int | None = None) -> Rows:
    """All statements of batches up to the last about items from low to below high; in the order of batches."""
    found = list(pieces(store, connection, last, low, high, batch))
    if not found:
        nothing = np.empty(0, np.int64)
        return Rows(nothing, nothing, nothing, nothing.astype(np.int8), nothing.astype(np.float32))
    return Rows(*(np.concatenate([getattr(one, part.name) for one in found]) for part in fields(Rows)))


def pieces(store: Store, connection: Connection, last: int, low: int, high: int, batch: int | None) -> Iterator[Rows]:
    """`rows`, a piece at a time."""
    table = store.tables["statements"]
    query = store.sa.select(table).where(table.c.batch <= last, table.c.first_item < high, table.c.last_item >= low)
    if batch is not None:
        query = query.where(table.c.batch == batch)
    query = query.order_by(table.c.batch, table.c.part).execution_options(yield_per=ROWS)
    for some in connection.execute(query).partitions():
        whole = _joined(store, some)
        inside = (whole.item >= low) & (whole.item < high)
        yield whole if inside.all() else whole[inside]


def _joined(store: Store, some: Sequence[Any]) -> Rows:
    """Rows of the table as one piece of each column, which somebody else may have written."""
    sizes = []
    for row in some:
        if not all(isinstance(getattr(row, name), bytes | memoryview) for name in (*BLOBS, "digest")):
            raise DataError(f"{store.place.shown}: damaged, batch {row.batch} holds no numbers. Restore a copy.")
        blobs = [bytes(getattr(row, name)) for name in BLOBS]
        count = len(blobs[2])
        whole = len(blobs[0]) == len(blobs[1]) == 4 * count and len(blobs[3]) in (0, 4 * count)
        if not whole or bytes(row.digest) != digest_of(row.batch, row.part, blobs):
            raise DataError(
                f"{store.place.shown}: damaged, the checksum of batch {row.batch} does not match. Restore a copy."
            )
        sizes.append(count)
    item, label, z = (np.frombuffer(b"".join(getattr(row, name) for row in some), TYPES[name]) for name in BLOBS[:3])
    low, high = (np.repeat([getattr(row, name) for row in some], sizes) for name in ("first_item", "last_item"))
    if not (((z >= -1) & (z <= 1)).all() and (label >= -1).all() and ((item >= low) & (item <= high)).all()):
        raise DataError(
            f"{store.place.shown}: damaged, statements of batches {some[0].batch} to {some[-1].batch} cannot be. "
            "Restore a copy."
        )
    unsaid = np.float32("nan")
    sure = [
        np.frombuffer(row.confidences, "<f4") if row.confidences else np.full(count, unsaid)
        for row, count in zip(some, sizes, strict=True)
    ]
    batch = np.repeat(np.array([row.batch for row in some], np.int64), sizes)
    return Rows(batch, item.astype(np.int64), label.astype(np.int64), z, np.concatenate(sure))


def counting(found: Rows, history: History, kinds: Sequence[str] = tuple(RANKS)) -> npt.NDArray[np.bool_]:
    """Which of these are not taken back, and of these kinds."""
    counts = np.zeros(history.last + 1, bool)
    for one in history.batches:
        counts[one.number] = not one.undone_by and one.kind in kinds
    keep = counts[found.batch]
    for batch, item, label in history.taken:
        keep &= (found.batch != batch) | (found.item != item) | (found.label != label)
    return keep


# ---------------------------------------------------------------- the fold


def folded(
    store: Store,
    connection: Connection,
    history: History,
    policy: str,
    models: bool,
    source: tuple[str, str, str] | None = None,
) -> Folded:
    """Of one state; of what one source says alone, where it is given. What is held at a time is by the block, beside
    the entries that come out."""
    voices: dict[tuple[str, str, str], int] = {}
    voice, rank = np.zeros(history.last + 1, np.int64), np.zeros(history.last + 1, np.int8)
    for one in history.batches:
        voice[one.number] = voices.setdefault(one.source, len(voices))
        rank[one.number] = RANKS[one.kind]
    kinds = [kind for kind in RANKS if models or kind != "model"]
    there = np.array(sorted(history.vocabulary.labels), np.int64)
    parts, items = [], [np.empty(0, np.int64)]
    for low, high in _blocks(store, connection, history):
        found = rows(store, connection, history.last, low, high)
        found = found[counting(found, history, kinds)]
        if source is not None:
            found = found[voice[found.batch] == voices.get(source, -1)]
        seen = np.zeros(high - low, bool)
        seen[found.item - low] = True
        items.append(np.flatnonzero(seen) + low)
        found = found[np.isin(found.label, there)]  # not of labels whose adding is taken back, nor of none
        said = Statements(found.item, found.label, found.z, voice[found.batch], rank[found.batch])
        parts.append(consequences(fold(said, policy), history.vocabulary))
    entries = Entries(*(np.concatenate(part) for part in zip(*(vars(one).values() for one in parts), strict=True)))
    numbers = np.concatenate(items)
    return Folded(history, numbers, _names(store, connection, numbers), entries)


def _blocks(store: Store, connection: Connection, history: History) -> list[tuple[int, int]]:
    """Ranges of items about which as many statements were made as can be folded at a time."""
    table, parts, sa = store.tables["items"], store.tables["statements"], store.sa
    first, last, count = connection.execute(
        sa.select(sa.func.min(table.c.number), sa.func.max(table.c.number), sa.func.count())
    ).one()
    told, rows = connection.execute(sa.select(sa.func.max(parts.c.last_item), sa.func.count())).one()
    if (count and (first, last) != (0, count - 1)) or (told is not None and told >= count):
        raise DataError(f"{store.place.shown}: damaged, items are missing or have other numbers. Restore a copy.")
    end = max(1, count)
    passes = max(1, -(-min(sum(one.count for one in history.batches), rows * PART) // BLOCK))
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
        raise DataError(f"{store.place.shown}: damaged, {len(lost) or 'some'} items have no name. Restore a copy.")
    return tuple(known[number] for number in numbers.tolist())


# ---------------------------------------------------------------- one item


def item_number(store: Store, connection: Connection, item: str) -> int:
    table = store.tables["items"]
    number = connection.execute(store.sa.select(table.c.number).where(table.c.name == item)).scalar()
    if number is None:
        some = connection.execute(store.sa.select(table.c.name).limit(1000)).scalars().all()
        raise SettingError(f"{store.place.shown}: nothing was said of an item {item!r}.{did_you_mean(item, some)}")
    return int(number)


def about(
    store: Store, connection: Connection, history: History, item: str
) -> list[tuple[Batch, int, int, float | None, bool]]:
    """(batch, label, z, confidence, does it count) of all that was said of an item."""
    number = item_number(store, connection, item)
    found = rows(store, connection, history.last, number, number + 1)
    found = found[found.label >= 0]
    counts = counting(found, history)
    by_number = {one.number: one for one in history.batches}
    return [
        (by_number[int(batch)], int(label), int(z), None if np.isnan(sure) else float(sure), bool(good))
        for batch, label, z, sure, good in zip(found.batch, found.label, found.z, found.confidence, counts, strict=True)
    ]


def statements_of(
    store: Store, connection: Connection, history: History, batch: int, item: str, label: str | None
) -> list[Taken]:
    """Those of a batch about an item, and a label, that are not taken back already."""
    number = item_number(store, connection, item)
    wanted = None if label is None else history.vocabulary.numbers([label])[0]
    last = max(batch, history.last)
    found = rows(store, connection, last, number, number + 1, batch=batch)
    labels = [
        one for one in found.label.tolist() if wanted in (None, one) and (batch, number, one) not in history.taken
    ]
    if not labels:
        of = "" if label is None else f" and {label!r}"
        raise SettingError(f"Batch {batch} says nothing of {item!r}{of} that could be taken back.")
    return [(batch, number, one) for one in labels]
