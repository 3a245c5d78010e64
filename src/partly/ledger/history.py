"""The batches of a ledger in their order: which of them count in a state, and what vocabulary they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from partly.errors import DataError, LabelError, PartlyError, SettingError, listing
from partly.labels.names import check_names
from partly.ledger.resolve import RANKS
from partly.ledger.vocabulary import Change, Label, Vocabulary, apply

At = int | str | datetime | None
MOST = 1 << 40  # statements of a batch
Taken = tuple[int, int, int]  # the batch of a statement, its item and label; -1 both: all of the batch


@dataclass(frozen=True)
class Batch:
    """What one source said at one time. `taken_back`: what it takes back; `count`: its statements; `vocabulary`: the
    version under which it spoke; `undone_by`: the batch that takes it back, 0 for none."""

    number: int
    time: datetime
    kind: str  # person, import, rule or model
    author: str
    run: str
    note: str
    vocabulary: int
    changes: tuple[Change, ...]
    count: int
    key: str | None
    taken_back: tuple[Taken, ...] = ()
    undone_by: int = 0
    said: datetime | None = None  # where it was first said elsewhere

    @property
    def source(self) -> tuple[str, str, str]:
        return self.kind, self.author, self.run


@dataclass(frozen=True)
class History:
    """All batches up to some state."""

    batches: tuple[Batch, ...]
    taken: frozenset[Taken]  # single statements that are taken back
    vocabulary: Vocabulary

    @property
    def last(self) -> int:
        return self.batches[-1].number if self.batches else 0


def replayed(batches: Sequence[Batch]) -> History:
    """Which batches count: from the last one backwards, since only a later one can take one back, and so can that one
    itself be taken back."""
    undone: dict[int, int] = {}
    taken: set[Taken] = set()
    for batch in reversed(batches):
        if batch.number in undone:
            continue
        for number, item, label in batch.taken_back:
            if number >= batch.number:
                raise DataError(f"batch {batch.number} takes back batch {number}, which came later: damaged.")
            if item < 0:
                undone.setdefault(number, batch.number)
            else:
                taken.add((number, item, label))
    _refuse_gaps(batches)
    marked = tuple(_undone(one, undone.get(one.number, 0)) for one in batches)
    return History(marked, frozenset(taken), vocabulary_of(one for one in marked if not one.undone_by))


def _refuse_gaps(batches: Sequence[Batch]) -> None:
    """Labels are counted on, so that none has a number beyond their count: arrays are made by these numbers."""
    given = {number for one in batches for change in one.changes if change.what != "rename" for number, _ in change.new}
    if given and max(given) >= len(given):
        raise DataError(f"label {max(given)} of {len(given)}: labels are numbered without gaps, so this is damaged.")


def vocabulary_of(batches: Iterable[Batch]) -> Vocabulary:
    """The labels after all these batches; names are compared once, at the end."""
    vocabulary, labels = Vocabulary(), dict[int, Label]()
    for batch in batches:
        if not batch.changes:
            continue
        try:
            for change in batch.changes:
                apply(labels, change)
        except (PartlyError, IndexError) as error:
            raise LabelError(f"batch {batch.number}: {error}") from None
        vocabulary = Vocabulary(MappingProxyType(labels), batch.number)
    check_names(vocabulary.names)
    return vocabulary


def cut(batches: Sequence[Batch], at: At, place: str) -> list[Batch]:
    """Those up to a batch (its number), or up to a time: a datetime, or text such as 2026-03-01T12:00."""
    if at is None:
        return list(batches)
    if isinstance(at, bool) or not isinstance(at, int | str | datetime):
        raise SettingError(f"at = {at!r}: give the number of a batch or a time.")
    if isinstance(at, str) and not at.isdecimal():
        at = time_of(at)
    if isinstance(at, datetime):
        until = at if at.tzinfo else at.replace(tzinfo=UTC)
        return [one for one in batches if one.time <= until]
    number, last = int(at), batches[-1].number if batches else 0
    if not 0 <= number <= last:
        raise SettingError(f"{place}: at = {number}: there are batches from 1 to {last}; 0 is before the first.")
    return [one for one in batches if one.number <= number]


def time_of(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise SettingError(f"at = {text!r}: give the number of a batch, or a time such as 2026-03-01T12:00.") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def check_source(kind: str, author: str, run: str) -> None:
    """Everything that is said has somebody who says it."""
    if kind not in RANKS:
        raise SettingError(f"kind = {kind!r}: may be {', '.join(RANKS)}.")
    if not (run if kind == "model" else author).strip():
        needed = "run, the name of the model's run" if kind == "model" else "author, who says it"
        raise SettingError(f"A statement of kind {kind!r} needs {needed}.")


def plain_text(what: str, words: Sequence[str]) -> None:
    """Texts that every database gives back as they are."""
    if _survives("".join(words)):
        return
    lost = [repr(word) for word in words if not _survives(word)]
    raise LabelError(
        f"{what}: no NUL and no broken Unicode can be kept; {len(lost)} of {len(words)} have some"
        + listing(lost, len(lost))
        + "\nRename them."
    )


def _survives(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def moment(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)


def batch_of(row: Any, taken: dict[int, list[Taken]]) -> Batch:
    """A row of the table, which somebody else may have written."""
    try:
        changes = tuple(map(Change.of_plain, json.loads(row.changes))) if row.changes else ()
        moments = [None if one is None else moment(one) for one in (row.time, row.said)]
        if row.kind not in RANKS or moments[0] is None:
            raise ValueError(f"its source is {row.kind!r}")
        words = (row.author, row.run, row.note, *([] if row.key is None else [row.key]))
        numbers = (row.vocabulary, row.size, *(part for one in taken.get(row.number, ()) for part in one))
        if not all(isinstance(word, str) for word in words) or not all(type(number) is int for number in numbers):
            raise ValueError("a text or a number is none")
        if not 0 <= row.size < MOST:
            raise ValueError(f"it has {row.size} statements")
    except (ValueError, TypeError, OverflowError, OSError, RecursionError) as error:
        raise DataError(f"batch {row.number}: damaged ({error}). Restore a copy of the ledger.") from None
    return Batch(
        row.number,
        moments[0],
        row.kind,
        row.author,
        row.run,
        row.note,
        row.vocabulary,
        changes,
        row.size,
        row.key,
        tuple(taken.get(row.number, ())),
        said=moments[1],
    )


def _undone(batch: Batch, by: int) -> Batch:
    return batch if batch.undone_by == by else replace(batch, undone_by=by)
