"""A batch into the tables of a ledger, inside of a transaction that somebody else begins and ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, PartlyError, SettingError, listing
from partly.ledger.history import Batch, History, Taken, moment, replayed
from partly.ledger.reader import TYPES, undone
from partly.ledger.store import BLOBS, PART, Store, changes_text, digest_of, now
from partly.ledger.vocabulary import Change, Vocabulary

if TYPE_CHECKING:
    from sqlalchemy import Connection

ASKED = 5000  # names that are looked up at a time
REMEMBERED = 1 << 20  # names of items
MOST = 2**31 - 1  # items, and labels: numbers of four bytes
Columns = tuple[  # of statements: items, labels, z and confidences
    npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8], npt.NDArray[np.float32] | None
]
NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class Draft:
    """A batch that is not written yet: its statements by position in `items` and `labels` (-1: the item is there)."""

    kind: str
    author: str
    run: str = ""
    note: str = ""
    key: str | None = None
    items: Sequence[str] = ()
    labels: Sequence[str] = ()
    item: npt.NDArray[np.int64] = field(default_factory=NOTHING.copy)
    label: npt.NDArray[np.int64] = field(default_factory=NOTHING.copy)
    z: npt.NDArray[np.int8] = field(default_factory=lambda: NOTHING.astype(np.int8))
    confidence: npt.NDArray[np.float32] | None = None
    taken: tuple[Taken, ...] = ()
    said: int | None = None


def write(
    store: Store, connection: Connection, history: History, draft: Draft, changes: tuple[Change, ...] = ()
) -> int:
    """The number of the batch. `history`: at least what has to do with the vocabulary."""
    table = store.tables["batches"]
    newest = store.sa.select(table.c.number, table.c.time).order_by(table.c.number.desc()).limit(1)
    last, before = connection.execute(newest).first() or (0, 0)
    number, time = last + 1, max(now(), before)
    _check_vocabulary(history, draft, changes, number)
    columns = _numbered(store, connection, history.vocabulary, draft)
    row = {"number": number, "time": time, "said": draft.said, "vocabulary": history.vocabulary.version}
    row |= {name: getattr(draft, name) for name in ("kind", "author", "run", "note", "key")}
    insert(store, connection, row | {"changes": changes_text(changes)}, columns, draft.taken)
    return int(number)


def insert(
    store: Store, connection: Connection, row: dict[str, Any], columns: Columns, taken: Sequence[Taken] = ()
) -> None:
    """A batch as it stands."""
    said = int((columns[1] >= 0).sum())
    connection.execute(store.tables["batches"].insert(), row | {"size": said})
    parts = list(_parts(row["number"], *columns))
    if parts:
        connection.execute(store.tables["statements"].insert(), parts)
    if taken:
        names = ("batch", "taken", "item", "label")
        rows = [dict(zip(names, (row["number"], *one), strict=True)) for one in taken]
        connection.execute(store.tables["taken_back"].insert(), rows)


def by_key(store: Store, connection: Connection, vocabulary: Vocabulary, draft: Draft) -> int | None:
    """The batch that was appended under this key; refused where it said something else."""
    if draft.key is None:
        return None
    table = store.tables["batches"]
    there = connection.execute(store.sa.select(table).where(table.c.key == draft.key)).first()
    if there is None:
        return None
    table = store.tables["statements"]
    query = store.sa.select(table.c.digest).where(table.c.batch == there.number).order_by(table.c.part)
    said = [part["digest"] for part in _parts(there.number, *_numbered(store, connection, vocabulary, draft))]
    same = all(getattr(there, name) == getattr(draft, name) for name in ("kind", "author", "run"))
    if not same or said != list(map(bytes, connection.execute(query).scalars())):
        raise SettingError(
            f"key = {draft.key!r}: batch {there.number} was appended under it, and says something else. "
            "A key stands for one batch; give this one another."
        )
    return int(there.number)


def repeated(store: Store, connection: Connection, history: History, draft: Draft) -> int | None:
    """Return the batch that says exactly the same by the same source, if it counts and is the last of that source; None
    where there is none. An import is the same whatever its file is called."""
    if not len(draft.item) or not set(draft.labels) <= set(history.vocabulary.names):
        return None
    table, parts = store.tables["batches"], store.tables["statements"]
    alike = [table.c.kind == draft.kind, table.c.run == draft.run, table.c.size > 0]
    alike += [table.c.author == draft.author] if draft.kind != "import" else []
    query = store.sa.select(table.c.author, table.c.number, table.c.size).where(*alike).order_by(table.c.number)
    whole, partly = undone(store, connection)
    gone = partly.union(whole)
    newest = {row.author: row for row in connection.execute(query) if row.number not in gone}
    size = len(np.unique(_flat(draft)[draft.label >= 0]))
    found = [row.number for row in newest.values() if row.size == size]
    columns = _numbered(store, connection, history.vocabulary, draft) if found else ()
    for number in sorted(found, reverse=True):
        digests = store.sa.select(parts.c.digest).where(parts.c.batch == number).order_by(parts.c.part)
        if [part["digest"] for part in _parts(number, *columns)] == list(map(bytes, connection.scalars(digests))):
            return int(number)
    return None


def free_label(history: History) -> int:
    """The number of the next label: none is ever given twice, though its adding be taken back."""
    numbers = (number for one in history.batches for change in one.changes for number, _ in change.new)
    return max(numbers, default=-1) + 1


def _check_vocabulary(history: History, draft: Draft, changes: tuple[Change, ...], number: int) -> None:
    """Refuse a change that cannot be, and to take back one on which others build."""
    if changes:
        history.vocabulary.changed(changes, number)
    structural = {one.number for one in history.batches}
    if any(taken in structural for taken, item, _ in draft.taken if item < 0):
        undo = Batch(number, moment(0), draft.kind, draft.author, "", "", 0, (), 0, None, draft.taken)
        try:
            replayed([*history.batches, undo])
        except PartlyError as error:
            raise SettingError(
                f"Later changes build on what is to be taken back; take them back first. {error}"
            ) from None


def _flat(draft: Draft) -> npt.NDArray[np.int64]:
    """A number for each entry that is named."""
    flat: npt.NDArray[np.int64] = draft.item * (len(draft.labels) + 1) + draft.label + 1
    return flat


def _numbered(store: Store, connection: Connection, vocabulary: Vocabulary, draft: Draft) -> Columns:
    """Items, labels, z and confidences as they are stored, in the order of items and labels, each entry once."""
    flat, first = np.unique(_flat(draft), return_index=True)
    clash = np.flatnonzero(draft.z != draft.z[first[np.searchsorted(flat, _flat(draft))]])
    if len(clash):
        told = (f"item {draft.items[draft.item[i]]!r}, label {draft.labels[draft.label[i]]!r}" for i in clash)
        raise LabelError(
            f"{len(clash)} entries are named twice in one batch, and not alike"
            + listing(told, len(clash))
            + "\nKeep one of the two; what people say at different times belongs into batches of their own."
        )
    numbers = np.array([*vocabulary.numbers(draft.labels), -1], np.int64)
    names = np.array(item_numbers(store, connection, draft.items), np.int64)
    item, label = names[draft.item[first]] if len(names) else NOTHING, numbers[draft.label[first]]
    order = np.lexsort((label, item))
    sure = None if draft.confidence is None else draft.confidence[first][order]
    return item[order], label[order], draft.z[first][order], sure


def item_numbers(store: Store, connection: Connection, names: Sequence[str]) -> list[int]:
    """The numbers of these items; new ones are counted on. Those that others have committed are remembered, since an
    item never changes its number; what this transaction adds is not, since it may come to nothing."""
    table, known = store.tables["items"], store.known_items
    if len(known) > REMEMBERED:
        known.clear()
    asked = [name for name in names if name not in known]
    for start in range(0, len(asked), ASKED):
        query = store.sa.select(table.c.name, table.c.number).where(table.c.name.in_(asked[start : start + ASKED]))
        known.update((name, number) for name, number in connection.execute(query).all())
    new = [name for name in names if name not in known]
    free = 0
    if new:
        last = connection.execute(store.sa.select(store.sa.func.max(table.c.number))).scalar()
        free = 0 if last is None else last + 1
        if free + len(new) > MOST:
            raise LabelError(f"{store.place.shown}: a ledger has room for {MOST} items.")
        connection.execute(table.insert(), [{"number": free + i, "name": name} for i, name in enumerate(new)])
    added = {name: free + i for i, name in enumerate(new)}
    return [known[name] if name in known else added[name] for name in names]


def _parts(
    batch: int,
    item: npt.NDArray[np.int64],
    label: npt.NDArray[np.int64],
    z: npt.NDArray[np.int8],
    sure: npt.NDArray[np.float32] | None,
) -> Iterator[dict[str, Any]]:
    for part, start in enumerate(range(0, len(item), PART)):
        here = slice(start, start + PART)
        columns = (item[here], label[here], z[here], None if sure is None else sure[here])
        blobs = [
            b"" if column is None else column.astype(TYPES[name]).tobytes()
            for name, column in zip(BLOBS, columns, strict=True)
        ]
        said = {"batch": batch, "part": part, "digest": digest_of(batch, part, blobs)}
        said |= {"first_item": int(item[here][0]), "last_item": int(item[here][-1])}
        yield said | dict(zip(BLOBS, blobs, strict=True))
