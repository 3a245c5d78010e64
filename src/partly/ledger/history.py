"""The history of a ledger: its batches in order, which of them count, and the vocabulary that they define."""

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
LANGUAGE_MODEL = "language-model "  # begins the run of a language model
MAX_BATCH_SIZE = 1 << 40  # statements
StatementRef = tuple[int, int, int]  # batch, item and label of a statement; item and label -1: the whole batch


@dataclass(frozen=True)
class Batch:
    """Statements of one source at one time.

    `count`: number of statements; `vocabulary`: version of the vocabulary; `taken_back`: statements that this batch
    undoes; `undone_by`: the batch that undoes this one, 0 for none.
    """

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
    taken_back: tuple[StatementRef, ...] = ()
    undone_by: int = 0
    said: datetime | None = None  # original time, if it was stated elsewhere

    @property
    def of_language_model(self) -> bool:
        """Tell whether a language model stated this batch."""
        return self.kind == "model" and self.run.startswith(LANGUAGE_MODEL)

    @property
    def source(self) -> tuple[str, str, str]:
        return self.kind, self.author, self.run


@dataclass(frozen=True)
class History:
    """All batches up to a state."""

    batches: tuple[Batch, ...]
    taken: frozenset[StatementRef]  # single statements that are undone
    vocabulary: Vocabulary

    @property
    def last(self) -> int:
        return self.batches[-1].number if self.batches else 0


def replay(batches: Sequence[Batch]) -> History:
    """Find out which batches count, from the last to the first: only a later batch can undo one, and be undone too."""
    undone: dict[int, int] = {}
    taken: set[StatementRef] = set()
    for batch in reversed(batches):
        if batch.number in undone:
            continue
        for number, item, label in batch.taken_back:
            if number >= batch.number:
                raise DataError(f"batch {batch.number} undoes batch {number}, which came later: damaged.")
            if item < 0:
                undone.setdefault(number, batch.number)
            else:
                taken.add((number, item, label))
    _refuse_gaps(batches)
    marked = tuple(
        batch if batch.undone_by == by else replace(batch, undone_by=by)
        for batch in batches
        for by in [undone.get(batch.number, 0)]
    )
    return History(marked, frozenset(taken), vocabulary_of(batch for batch in marked if not batch.undone_by))


def _refuse_gaps(batches: Sequence[Batch]) -> None:
    """Refuse label numbers with gaps, which would make arrays of any size."""
    changes = [change for batch in batches for change in batch.changes if change.what != "rename"]
    numbers = {number for change in changes for number, _ in change.new}
    if numbers and max(numbers) >= len(numbers):
        raise DataError(
            f"label {max(numbers)} of {len(numbers)}: labels are numbered without gaps, so this is damaged."
        )


def vocabulary_of(batches: Iterable[Batch]) -> Vocabulary:
    """Return the labels after all these batches; names are compared once, at the end."""
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


def batches_up_to(batches: Sequence[Batch], at: At, place: str) -> list[Batch]:
    """Return the batches up to a number or a time (a datetime, or text such as 2026-03-01T12:00)."""
    if at is None:
        return list(batches)
    if isinstance(at, bool) or not isinstance(at, int | str | datetime):
        raise SettingError(f"at = {at!r}: give the number of a batch or a time.")
    if isinstance(at, str) and not at.isdecimal():
        at = parse_time(at)
    if isinstance(at, datetime):
        until = at if at.tzinfo else at.replace(tzinfo=UTC)
        return [batch for batch in batches if batch.time <= until]
    number, last = int(at), batches[-1].number if batches else 0
    if not 0 <= number <= last:
        raise SettingError(f"{place}: at = {number}: there are batches from 1 to {last}; 0 is before the first.")
    return [batch for batch in batches if batch.number <= number]


def parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise SettingError(f"at = {text!r}: give the number of a batch, or a time such as 2026-03-01T12:00.") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def check_source(kind: str, author: str, run: str) -> None:
    """Refuse statements without a known kind and a source."""
    if kind not in RANKS:
        raise SettingError(f"kind = {kind!r}: may be {', '.join(RANKS)}.")
    if not (run if kind == "model" else author).strip():
        needed = "run, the name of the model's run" if kind == "model" else "author"
        raise SettingError(f"A statement of kind {kind!r} needs {needed}.")


def check_text(what: str, texts: Sequence[str]) -> None:
    """Refuse texts that a database would not return unchanged."""
    if _is_storable("".join(texts)):
        return
    lost = [repr(text) for text in texts if not _is_storable(text)]
    raise LabelError(
        f"{what}: NUL and broken Unicode cannot be stored; {len(lost)} of {len(texts)} have some"
        + listing(lost, len(lost))
        + "\nRename them."
    )


def _is_storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def to_datetime(microseconds: int) -> datetime:
    return datetime.fromtimestamp(microseconds / 1e6, UTC)


def batch_of(row: Any, taken: dict[int, list[StatementRef]]) -> Batch:
    """Parse a row of the table `batches`, which another program may have written."""
    try:
        changes = tuple(map(Change.from_plain, json.loads(row.changes))) if row.changes else ()
        time, said = (None if value is None else to_datetime(value) for value in (row.time, row.said))
        if row.kind not in RANKS or time is None:
            raise ValueError(f"its source is {row.kind!r}")
        texts = (row.author, row.run, row.note, *([] if row.key is None else [row.key]))
        numbers = (row.vocabulary, row.size, *(part for ref in taken.get(row.number, ()) for part in ref))
        if not all(isinstance(text, str) for text in texts) or not all(type(number) is int for number in numbers):
            raise ValueError("a value has the wrong type")
        if not 0 <= row.size < MAX_BATCH_SIZE:
            raise ValueError(f"it has {row.size} statements")
    except (ValueError, TypeError, OverflowError, OSError, RecursionError) as error:
        raise DataError(f"batch {row.number}: damaged ({error}). Restore a copy of the ledger.") from None
    return Batch(
        row.number,
        time,
        row.kind,
        row.author,
        row.run,
        row.note,
        row.vocabulary,
        changes,
        row.size,
        row.key,
        tuple(taken.get(row.number, ())),
        said=said,
    )
