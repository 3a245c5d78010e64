"""Write a batch to the tables of a ledger, within a transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, PartlyError, SettingError, listing
from partly.ledger.history import Batch, History, StatementRef, replay, to_datetime
from partly.ledger.reader import BLOB_TYPES, read_undone
from partly.ledger.store import BLOBS, STATEMENTS_PER_ROW, Store, changes_text, digest_of, now
from partly.ledger.vocabulary import Change, Vocabulary

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOOKUP_NAMES = 5000  # per query
MAX_CACHED_ITEMS = 1 << 20
MAX_NUMBER = 2**31 - 1  # of items and of labels, which are stored in four bytes
StatementColumns = tuple[  # items, labels, z and confidences
    npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8], npt.NDArray[np.float32] | None
]
EMPTY = np.empty(0, np.int64)


@dataclass(frozen=True)
class Draft:
    """A batch that is not written yet.

    `item` and `label` are positions in `items` and `labels`; label -1 records that the item exists.
    """

    kind: str
    author: str
    run: str = ""
    note: str = ""
    key: str | None = None
    items: Sequence[str] = ()
    labels: Sequence[str] = ()
    item: npt.NDArray[np.int64] = field(default_factory=EMPTY.copy)
    label: npt.NDArray[np.int64] = field(default_factory=EMPTY.copy)
    z: npt.NDArray[np.int8] = field(default_factory=lambda: EMPTY.astype(np.int8))
    confidence: npt.NDArray[np.float32] | None = None
    taken: tuple[StatementRef, ...] = ()
    said: int | None = None


def write(
    store: Store, connection: Connection, history: History, draft: Draft, changes: tuple[Change, ...] = ()
) -> int:
    """Write a batch and return its number. `history`: at least the batches that define the vocabulary."""
    table = store.tables["batches"]
    newest = store.sa.select(table.c.number, table.c.time).order_by(table.c.number.desc()).limit(1)
    last, before = connection.execute(newest).first() or (0, 0)
    number, time = last + 1, max(now(), before)
    _check_vocabulary(history, draft, changes, number)
    columns = _encode(store, connection, history.vocabulary, draft)
    row = {"number": number, "time": time, "said": draft.said, "vocabulary": history.vocabulary.version}
    row |= {name: getattr(draft, name) for name in ("kind", "author", "run", "note", "key")}
    insert(store, connection, row | {"changes": changes_text(changes)}, columns, draft.taken)
    return int(number)


def insert(
    store: Store,
    connection: Connection,
    row: dict[str, Any],
    columns: StatementColumns,
    taken: Sequence[StatementRef] = (),
) -> None:
    """Insert a batch with the given number and time."""
    size = int((columns[1] >= 0).sum())
    connection.execute(store.tables["batches"].insert(), row | {"size": size})
    statement_rows = list(_statement_rows(row["number"], *columns))
    if statement_rows:
        connection.execute(store.tables["statements"].insert(), statement_rows)
    if taken:
        names = ("batch", "taken", "item", "label")
        rows = [dict(zip(names, (row["number"], *ref), strict=True)) for ref in taken]
        connection.execute(store.tables["taken_back"].insert(), rows)


def find_by_key(store: Store, connection: Connection, vocabulary: Vocabulary, draft: Draft) -> int | None:
    """Return the batch that was appended under this key, or None; refuse a key of a batch with other statements."""
    if draft.key is None:
        return None
    table = store.tables["batches"]
    row = connection.execute(store.sa.select(table).where(table.c.key == draft.key)).first()
    if row is None:
        return None
    same_source = all(getattr(row, name) == getattr(draft, name) for name in ("kind", "author", "run"))
    if not same_source or not _has_statements(
        store, connection, row.number, _encode(store, connection, vocabulary, draft)
    ):
        raise SettingError(
            f"key = {draft.key!r}: batch {row.number} has this key and other statements. "
            "A key stands for one batch; give this one another."
        )
    return int(row.number)


def find_repeated(store: Store, connection: Connection, history: History, draft: Draft) -> int | None:
    """Return the last batch of the same source if it counts and has the same statements, or None.

    Imports are compared without the name of their file.
    """
    if not len(draft.item) or not set(draft.labels) <= set(history.vocabulary.names):
        return None
    table = store.tables["batches"]
    same_source = [table.c.kind == draft.kind, table.c.run == draft.run, table.c.size > 0]
    same_source += [table.c.author == draft.author] if draft.kind != "import" else []
    query = store.sa.select(table.c.author, table.c.number, table.c.size).where(*same_source).order_by(table.c.number)
    whole, in_part = read_undone(store, connection)
    excluded = in_part.union(whole)
    newest = {row.author: row for row in connection.execute(query) if row.number not in excluded}
    size = len(np.unique(_entry_keys(draft)[draft.label >= 0]))
    numbers = [row.number for row in newest.values() if row.size == size]
    if not numbers:
        return None
    columns = _encode(store, connection, history.vocabulary, draft)
    same = (number for number in sorted(numbers, reverse=True) if _has_statements(store, connection, number, columns))
    return next(map(int, same), None)


def _has_statements(store: Store, connection: Connection, number: int, columns: StatementColumns) -> bool:
    """Tell whether a batch has exactly these statements, by their digests."""
    table = store.tables["statements"]
    query = store.sa.select(table.c.digest).where(table.c.batch == number).order_by(table.c.part)
    digests = [row["digest"] for row in _statement_rows(number, *columns)]
    return digests == list(map(bytes, connection.scalars(query)))


def next_label(history: History) -> int:
    """Return the number of the next label; numbers are not reused, even if the addition of a label is undone."""
    numbers = (number for batch in history.batches for change in batch.changes for number, _ in change.new)
    return max(numbers, default=-1) + 1


def _check_vocabulary(history: History, draft: Draft, changes: tuple[Change, ...], number: int) -> None:
    """Refuse a change that cannot be applied, and an undo of a change that later ones build on."""
    if changes:
        history.vocabulary.check_changes(changes)
    structural = {batch.number for batch in history.batches}
    if any(taken in structural for taken, item, _ in draft.taken if item < 0):
        undo = Batch(number, to_datetime(0), draft.kind, draft.author, "", "", 0, (), 0, None, draft.taken)
        try:
            replay([*history.batches, undo])
        except PartlyError as error:
            raise SettingError(f"Later changes build on this one; undo them first. {error}") from None


def _entry_keys(draft: Draft) -> npt.NDArray[np.int64]:
    """Return a number per statement that identifies its entry."""
    keys: npt.NDArray[np.int64] = draft.item * (len(draft.labels) + 1) + draft.label + 1
    return keys


def _encode(store: Store, connection: Connection, vocabulary: Vocabulary, draft: Draft) -> StatementColumns:
    """Return items, labels, z and confidences in the form of the store: sorted, each entry once."""
    keys = _entry_keys(draft)
    unique, first = np.unique(keys, return_index=True)
    clash = np.flatnonzero(draft.z != draft.z[first[np.searchsorted(unique, keys)]])
    if len(clash):
        entries = (f"item {draft.items[draft.item[i]]!r}, label {draft.labels[draft.label[i]]!r}" for i in clash)
        raise LabelError(
            f"{len(clash)} entries have two different values in one batch"
            + listing(entries, len(clash))
            + "\nKeep one of the two, or append them as separate batches."
        )
    numbers = np.array([*vocabulary.numbers(draft.labels), -1], np.int64)
    items = np.array(item_numbers(store, connection, draft.items), np.int64)
    item, label = items[draft.item[first]] if len(items) else EMPTY, numbers[draft.label[first]]
    order = np.lexsort((label, item))
    confidence = None if draft.confidence is None else draft.confidence[first][order]
    return item[order], label[order], draft.z[first][order], confidence


def item_numbers(store: Store, connection: Connection, names: Sequence[str]) -> list[int]:
    """Return the numbers of items and add those that are new.

    Numbers that are in the database are cached, since they never change. New ones are not: the transaction may fail.
    """
    table, known = store.tables["items"], store.known_items
    if len(known) > MAX_CACHED_ITEMS:
        known.clear()
    unknown = [name for name in names if name not in known]
    for start in range(0, len(unknown), LOOKUP_NAMES):
        part = unknown[start : start + LOOKUP_NAMES]
        query = store.sa.select(table.c.name, table.c.number).where(table.c.name.in_(part))
        known.update((name, number) for name, number in connection.execute(query).all())
    new = [name for name in names if name not in known]
    free = 0
    if new:
        last = connection.execute(store.sa.select(store.sa.func.max(table.c.number))).scalar()
        free = 0 if last is None else last + 1
        if free + len(new) > MAX_NUMBER:
            raise LabelError(f"{store.place.address}: a ledger holds at most {MAX_NUMBER} items.")
        connection.execute(table.insert(), [{"number": free + i, "name": name} for i, name in enumerate(new)])
    added = {name: free + i for i, name in enumerate(new)}
    return [known[name] if name in known else added[name] for name in names]


def _statement_rows(
    batch: int,
    item: npt.NDArray[np.int64],
    label: npt.NDArray[np.int64],
    z: npt.NDArray[np.int8],
    confidence: npt.NDArray[np.float32] | None,
) -> Iterator[dict[str, Any]]:
    """Yield rows of the table `statements`."""
    for part, start in enumerate(range(0, len(item), STATEMENTS_PER_ROW)):
        block = slice(start, start + STATEMENTS_PER_ROW)
        columns = (item[block], label[block], z[block], None if confidence is None else confidence[block])
        blobs = [
            b"" if column is None else column.astype(BLOB_TYPES[name]).tobytes()
            for name, column in zip(BLOBS, columns, strict=True)
        ]
        row = {"batch": batch, "part": part, "digest": digest_of(batch, part, blobs)}
        row |= {"first_item": int(item[block][0]), "last_item": int(item[block][-1])}
        yield row | dict(zip(BLOBS, blobs, strict=True))
