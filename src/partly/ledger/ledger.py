"""Ledger: statements appended, taken back and folded into Labels."""

# Long because it is the whole face of a ledger, with a sentence for each of its words; the work is done beside it.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from partly.atomic_io import PathLike
from partly.errors import LabelError, SettingError, listing
from partly.labels import Hierarchy, Labels
from partly.labels.names import check_names, encode_words, is_missing
from partly.ledger import reader, writer
from partly.ledger.history import At, Batch, History, Taken, check_source, cut, plain_text, replayed
from partly.ledger.location import Place, place_of, policy_of
from partly.ledger.reader import Folded
from partly.ledger.resolve import POLICIES, Ints
from partly.ledger.store import Joined, Store
from partly.ledger.vocabulary import Change, Vocabulary, refuse_taken
from partly.ledger.writer import Draft

Said = tuple[Ints, Ints, npt.NDArray[np.int8]]  # rows, columns and z
WORDS = {1: "yes", -1: "no", 0: "cannot tell"}
KNOWN = {1: "yes", -1: "no", 0: "unknown"}


@dataclass(frozen=True)
class Statement:
    """What somebody said of an entry: yes, no or cannot tell. `counts`: it is not taken back."""

    batch: Batch
    item: str
    label: str
    value: str
    confidence: float | None
    counts: bool


@dataclass(frozen=True)
class Difference:
    """An entry that is not the same in two states: yes, no or unknown, or nothing where there is no such label."""

    item: str
    label: str
    before: str
    after: str


class Ledger:
    """A ledger that is there: the path of a file, or postgresql://user@host/database. See `partly.ledger`.

    Parameters
    ----------
    url : str or Path
        Of one that is there.

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

    def __init__(self, url: PathLike | Place) -> None:
        self.store = Store(place_of(url))

    @classmethod
    def create(
        cls,
        url: PathLike | Place,
        names: Iterable[object] = (),
        hierarchy: Hierarchy | None = None,
        author: str = "partly",
    ) -> Self:
        """A new one, with these labels, if any."""
        names = check_names(names)
        with cls.making(url) as made:
            if names or hierarchy is not None:
                made.add(names, hierarchy, author=author)
        return made

    @classmethod
    @contextmanager
    def making(cls, url: PathLike | Place) -> Iterator[Self]:
        """A new one that is there with all it is told within this, or not at all."""
        made = object.__new__(cls)
        store = Store(place_of(url), create=True)
        with store.creating() as connection:
            made.store = Joined(store, connection)  # type: ignore[assignment]
            yield made
        made.store = store

    def __repr__(self) -> str:
        return f"Ledger({self.store.place.shown!r})"

    # ---------------------------------------------------------------- saying something

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
        """Statements, one each of (item, label, value): 1 or True yes, 0 or False no, None or NaN cannot tell; the
        number of their batch, in which an entry is named once. `add_labels`: names that are not in the vocabulary
        are added to it, in a batch before; else they are refused. `skip_repeated`: if the last
        batch of the same source says exactly the same, append nothing and return its number."""
        item_names, item = encode_words(items, None, "item")
        label_names, label = encode_words(labels, None, "label")
        z = _ternary(values)
        if not len(item) == len(label) == len(z):
            raise LabelError(f"{len(item)} items, {len(label)} labels and {len(z)} values: as many of each are needed.")
        sure = _confidences(confidence, len(z))
        said = Draft(kind, author, run, note, key, item_names, label_names, item, label, z, sure)
        return self._append(said, add_labels, skip_repeated)

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
        """All that is known in these labels, and that their items are there. `mapping`: their names for labels -> those
        of the vocabulary, of which several may be the same: then a yes of one is a yes, and a no takes a no of all.
        `skip_repeated`: as in `append`."""
        names, (row, column, value) = labels.names, labels.entries()
        z = np.where(value == 1, 1, -1).astype(np.int8)
        names, said = _regrouped((row, column, z), names, mapping or {})
        said = _with_silent(len(labels), said)
        draft = Draft(kind, author, run, note, key, labels.ids, names, *said)
        return self._append(draft, add_labels, skip_repeated)

    def append_ledger(
        self,
        other: Ledger,
        *,
        mapping: Mapping[str, str] | None = None,
        add_labels: bool = False,
        skip_repeated: bool = False,
    ) -> list[int]:
        """What each voice of another ledger says by now, as a batch of that voice: who said it stays known.
        `skip_repeated`: as in `append`."""
        history = other._history(None)
        by_last = {one.source: one.number for one in history.batches if one.count and not one.undone_by}
        made = []
        for kind, author, run in sorted(by_last, key=lambda source: by_last[source]):
            with other.store.reading() as connection:
                found = reader.folded(other.store, connection, history, "latest", True, (kind, author, run))
            entries, names = found.entries, history.vocabulary.names
            column = _positions([one.number for one in history.vocabulary.shown], entries.label)
            here, row = column >= 0, np.searchsorted(found.items, entries.item)
            names, said = _regrouped((row[here], column[here], entries.z[here]), names, mapping or {})
            note, said = f"from {other.store.place.shown}", _with_silent(len(found.names), said)
            draft = Draft(kind, author, run, note, None, found.names, names, *said)
            made.append(self._append(draft, add_labels, skip_repeated))
        return made

    def _append(self, said: Draft, add_labels: bool, skip_repeated: bool) -> int:
        check_source(said.kind, said.author, said.run)
        plain_text("author, run, note or key", [said.author, said.run, said.note, said.key or ""])
        plain_text("items", said.items)
        plain_text("labels", said.labels)
        with self.store.writing() as connection:
            history = reader.structure(self.store, connection)
            there = writer.by_key(self.store, connection, history.vocabulary, said)
            if there is None and skip_repeated:
                there = writer.repeated(self.store, connection, history, said)
            if there is not None:
                return there
            if add_labels and (new := [name for name in said.labels if name not in history.vocabulary.names]):
                refuse_taken(history.vocabulary, new)
                number = writer.free_label(history)
                change = Change("add", (), tuple(enumerate(new, number)))
                before = Draft(said.kind, said.author, said.run, "labels of what follows")
                writer.write(self.store, connection, history, before, (change,))
                history = reader.structure(self.store, connection)
            return writer.write(self.store, connection, history, said)

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
        """Take back a batch; or what it said of an item (and a label); or, without a batch, all that a source has said
        so far, of this kind, author and run. Nothing is erased: this is a batch too, and undoing it gives all back."""
        check_source("person", by, "")
        plain_text("by or note", [by, note])
        with self.store.writing() as connection:
            if batch is not None and item is label is kind is author is run is None:
                history = reader.structure(self.store, connection)
                taken: list[Taken] = [(self._counting(connection, batch), -1, -1)]
            else:
                history = replayed(reader.batches(self.store, connection))
                numbers = _meant(history.batches, batch, {"kind": kind, "author": author, "run": run})
                taken = [(number, -1, -1) for number in numbers]
            if item is not None or label is not None:
                if batch is None or item is None:
                    raise SettingError("A statement is named by its batch, its item and, of several, its label.")
                taken = reader.statements_of(self.store, connection, history, batch, item, label)
            said = Draft("person", by, "", note, taken=tuple(taken))
            return writer.write(self.store, connection, history, said)

    def _counting(self, connection: Any, number: int) -> int:
        """The number of a batch that is not taken back; refused where it is, or where there is none. All batches need
        not be read for that: a ledger may hold a million."""
        table = self.store.tables["batches"]
        last = connection.scalar(self.store.sa.select(self.store.sa.func.max(table.c.number))) or 0
        _refuse_undone(number, last, lambda: reader.undone(self.store, connection, number)[0].get(number, 0))
        return number

    # ---------------------------------------------------------------- asking

    def labels(self, at: At = None, *, policy: str = "latest", models: bool = False) -> Labels:
        """What is known: the fold of all that counts, under a policy, "latest" or "majority" (`ledger.folding` has the
        words). `at`: as after a batch, or at a time. `models`: what models said counts too, where nobody else spoke."""
        found = self.folded(at, policy=policy, models=models)
        shown, entries = found.history.vocabulary.shown, found.shown
        row, value = np.searchsorted(found.items, entries.item), (entries.z == 1).astype(np.int8)
        column = _positions([one.number for one in shown], entries.label)
        return Labels.from_codes(row, column, value, [one.name for one in shown], found.names)

    def folded(self, at: At = None, *, policy: str = "latest", models: bool = False) -> Folded:
        """The same before it becomes Labels: with the hidden labels, ranks, and where voices differ."""
        policy_of(policy, POLICIES)
        with self.store.reading() as connection:
            history = replayed(cut(reader.batches(self.store, connection), at, self.store.place.shown))
            return reader.folded(self.store, connection, history, policy, models)

    def vocabulary(self, at: At = None) -> Vocabulary:
        """Which labels there are, and what became of each."""
        return self._history(at).vocabulary

    def hierarchy(self, at: At = None) -> Hierarchy | None:
        """What splits and parents make of the labels, if anything."""
        return self.vocabulary(at).hierarchy()

    def log(self, at: At = None) -> list[Batch]:
        """Every batch, in order; those that are taken back say by which."""
        return list(self._history(at).batches)

    def _history(self, at: At) -> History:
        with self.store.reading() as connection:
            found = reader.batches(self.store, connection)
        return replayed(cut(found, at, self.store.place.shown))

    def show(self, item: str, at: At = None) -> list[Statement]:
        """All that was ever said of an item, in order."""
        with self.store.reading() as connection:
            history = replayed(cut(reader.batches(self.store, connection), at, self.store.place.shown))
            rows = reader.about(self.store, connection, history, item)
        label = history.vocabulary.labels
        return [
            Statement(batch, item, label[number].name if number in label else f"label {number}", WORDS[z], sure, counts)
            for batch, number, z, sure, counts in rows
        ]

    def diff(self, before: At, after: At = None, *, policy: str = "latest", models: bool = True) -> list[Difference]:
        """Entries that two states tell apart, by item and label, under the names of the later state."""
        one, two = (self.folded(at, policy=policy, models=models) for at in (before, after))
        return list(_differences(one, two))

    def disagreements(self, at: At = None, *, models: bool = False) -> list[tuple[str, str]]:
        """(item, label) of entries on which voices differ, or that contradict another entry; `show` says who."""
        found = self.folded(at, models=models)
        label, torn = found.history.vocabulary.labels, np.flatnonzero(found.entries.torn)
        names = found.names_of(found.entries.item[torn])
        return [
            (name, label[number].name)
            for name, number in zip(names, found.entries.label[torn].tolist(), strict=True)
            if number in label
        ]

    # ---------------------------------------------------------------- the vocabulary changes

    def add(
        self,
        names: Iterable[object],
        hierarchy: Hierarchy | None = None,
        *,
        parent: str | None = None,
        author: str = "partly",
    ) -> int:
        """New labels, unknown everywhere: below `parent`, or as a hierarchy of them says."""
        wanted = check_names(names)

        def changes(there: Vocabulary, free: int) -> list[Change]:
            parents = {} if hierarchy is None else dict(hierarchy.parents)
            wide = wanted if hierarchy is None else (*wanted, *(n for n in hierarchy.names if n not in wanted))
            new = [name for name in wide if hierarchy is None or name not in there.names]
            if parent is not None:
                parents |= dict.fromkeys(new, parent)
            refuse_taken(there, new)
            made, at = [], {one.name: one.number for one in there.shown}
            pending = list(new)
            while pending:  # parents before their children
                name = next((one for one in pending if parents.get(one) not in pending), pending[0])
                pending.remove(name)
                above = parents.get(name)
                of = () if above is None else (at[above] if above in at else there.numbers([above])[0],)
                at[name] = free + new.index(name)
                made.append(Change("add", of, ((at[name], name),)))
            return made

        return self._change(changes, author)

    def split(self, label: str, into: Iterable[object], *, author: str = "partly") -> int:
        """Parts of a label: it stays, as their parent. Where it is no they are no, else they start unknown."""
        names = check_names(into)

        def changes(there: Vocabulary, free: int) -> list[Change]:
            if not names:
                raise LabelError(f"split: into what? {label!r} needs one part or more.")
            refuse_taken(there, names)
            return [Change("split", tuple(there.numbers([label])), tuple(enumerate(names, free)))]

        return self._change(changes, author)

    def merge(self, labels: Iterable[str], name: str, *, author: str = "partly") -> int:
        """One label of several, which are hidden then: a yes of one is a yes, a no takes a no of all."""
        labels = list(labels)

        def changes(there: Vocabulary, free: int) -> list[Change]:
            refuse_taken(there, check_names([name]), but=labels)
            return [there.merge(there.numbers(labels), free, name)]

        return self._change(changes, author)

    def rename(self, label: str, name: str, *, author: str = "partly") -> int:
        """Call a label something else; what was said of it stays."""

        def changes(there: Vocabulary, free: int) -> list[Change]:
            refuse_taken(there, check_names([name]), but=[label])
            (number,) = there.numbers([label])
            return [Change("rename", (number,), ((number, name),))]

        return self._change(changes, author)

    def retire(self, labels: Iterable[str], *, author: str = "partly") -> int:
        """Hide labels. What was said of them stays, and what follows from it still does."""
        labels = list(labels)
        return self._change(lambda there, _: [Change("retire", tuple(there.numbers(labels)))], author)

    def _change(self, changes: Callable[[Vocabulary, int], Sequence[Change]], author: str) -> int:
        check_source("person", author, "")
        with self.store.writing() as connection:
            history = reader.structure(self.store, connection)
            made = tuple(changes(history.vocabulary, writer.free_label(history)))
            plain_text("author and labels", [author, *(name for change in made for _, name in change.new)])
            return writer.write(self.store, connection, history, Draft("person", author), made)


def _regrouped(said: Said, names: Sequence[str], mapping: Mapping[str, str]) -> tuple[tuple[str, ...], Said]:
    """Names and entries under the names that the mapping gives. Of several that become one, a yes of any is a yes, a no
    takes a no of all, and else what somebody could not tell of one he cannot tell of all."""
    (row, column, z), (new, place) = said, _renamed(names, mapping)
    sizes = np.bincount(place, minlength=len(new))
    flat, at = np.unique(row * len(new) + place[column], return_inverse=True)
    yes, no, unsure = (np.bincount(at, z == value, minlength=len(flat)) for value in (1, -1, 0))
    found = np.select([yes > 0, no == sizes[flat % max(1, len(new))]], [1, -1], 0).astype(np.int8)
    told = (found != 0) | (unsure > 0)
    return new, (flat[told] // max(1, len(new)), flat[told] % max(1, len(new)), found[told])


def _renamed(names: Sequence[str], mapping: Mapping[str, str]) -> tuple[tuple[str, ...], npt.NDArray[np.int64]]:
    """The names that the mapping gives, each once, and which of them each of these becomes."""
    strange = [repr(name) for name in mapping if name not in names]
    if strange:
        raise LabelError(
            f"The mapping names labels that are not there, of {len(names)}" + listing(strange, len(strange))
        )
    wanted = [mapping.get(name, name) for name in names]
    new = check_names(dict.fromkeys(wanted))
    return new, np.array([new.index(name) for name in wanted], np.int64)


def _with_silent(count: int, said: Said) -> Said:
    """And the items of which nothing more is said than that they are there."""
    silent = np.setdiff1d(np.arange(count), said[0])
    nothing = np.full(len(silent), -1)
    return np.r_[said[0], silent], np.r_[said[1], nothing], np.r_[said[2], np.zeros(len(silent), np.int8)]


def _positions(words: Sequence[int], wanted: Ints) -> Ints:
    """Where each wanted number stands among some; -1 where it does not."""
    at = np.full(1 + max([*words, int(wanted.max(initial=0))]), -1)
    at[list(words)] = np.arange(len(words))
    found: Ints = at[wanted]
    return found


def _ternary(values: Iterable[Any]) -> npt.NDArray[np.int8]:
    """1, 0 and nothing as +1, -1 and 0."""
    listed = values if isinstance(values, np.ndarray) else list(values)
    if isinstance(listed, np.ndarray) and listed.dtype.kind in "biu":
        if not np.isin(listed, (0, 1)).all():
            strange = np.unique(listed[~np.isin(listed, (0, 1))])
            raise LabelError(f"Values are 1 yes, 0 no or None cannot tell; got {', '.join(map(str, strange[:5]))}.")
        return np.where(listed == 1, 1, -1).astype(np.int8)
    codes = [0 if is_missing(one) else 1 if one == 1 else -1 if one == 0 else 2 for one in listed]
    wrong = [repr(one) for one, z in zip(listed, codes, strict=True) if z == 2]
    if wrong:
        raise LabelError("Values are 1 yes, 0 no or None cannot tell; these are not" + listing(wrong, len(wrong)))
    return np.array(codes, np.int8)


def _confidences(given: npt.ArrayLike | None, count: int) -> npt.NDArray[np.float32] | None:
    if given is None:
        return None
    sure = np.asarray(given, np.float32)
    if sure.ndim == 0:
        sure = np.full(count, sure)
    if sure.shape != (count,) or not ((sure >= 0) & (sure <= 1)).all():
        raise LabelError(f"confidence: {count} numbers from 0 to 1, one for each statement.")
    return sure


def _meant(batches: Sequence[Batch], number: int | None, source: Mapping[str, str | None]) -> list[int]:
    """The batches that are to be taken back; refused where there is nothing to."""
    asked = {name: value for name, value in source.items() if value is not None}
    if (number is None) == (not asked):
        raise SettingError("Say what to take back: the number of a batch, or a source (kind, author, run).")
    if number is None:
        found = [
            one.number
            for one in batches
            if not one.undone_by and one.count and all(getattr(one, name) == value for name, value in asked.items())
        ]
        if not found:
            raise SettingError(f"Nothing that counts was said by {', '.join(f'{a} {b!r}' for a, b in asked.items())}.")
        return found
    _refuse_undone(number, len(batches), lambda: batches[number - 1].undone_by)
    return [number]


def _refuse_undone(number: int, last: int, undone_by: Callable[[], int]) -> None:
    """Refuse to take back a batch that is not there, or is taken back already."""
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= last:
        raise SettingError(f"There is no batch {number!r}: they go from 1 to {last}.")
    if by := undone_by():
        raise SettingError(f"Batch {number} is taken back already, by batch {by}. To have it again, undo that one.")


def _differences(one: Folded, two: Folded) -> Iterable[Difference]:
    """By number, so that a label that was renamed is the same one."""
    width = 1 + max((number for side in (one, two) for number in side.history.vocabulary.labels), default=0)
    keys = [side.shown.item * width + side.shown.label for side in (one, two)]  # sorted: entries are in reading order
    every = np.union1d(*keys)
    z = [_looked_up(key, side.shown.z, every) for key, side in zip(keys, (one, two), strict=True)]
    shown = [{label.number: label.name for label in side.history.vocabulary.shown} for side in (one, two)]
    for i in np.flatnonzero(z[0] != z[1]).tolist():
        item, label = divmod(int(every[i]), width)
        was, now = ("" if label not in there else KNOWN[int(part[i])] for part, there in zip(z, shown, strict=True))
        name = (two if item in two else one).names_of(np.array([item]))[0]
        yield Difference(name, shown[1].get(label) or shown[0][label], was, now)


def _looked_up(key: npt.NDArray[np.int64], z: npt.NDArray[np.int8], wanted: npt.NDArray[np.int64]) -> Any:
    found = np.zeros(len(wanted), np.int8)
    found[np.searchsorted(wanted, key)] = z
    return found
