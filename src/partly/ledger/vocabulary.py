"""Which labels there are, and how that came: a fold of changes, as labels are a fold of statements.

A label keeps its number whatever it is called, so a rename changes nothing that was said. A label that was split keeps
what was said of it and becomes the parent of its parts; one that was merged or retired is hidden, and what was said of
it still counts where something follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from partly.errors import LabelError, did_you_mean, listing
from partly.labels import Hierarchy
from partly.labels.names import check_names, fold

WHAT = ("add", "split", "merge", "rename", "retire")


@dataclass(frozen=True)
class Change:
    """add: labels `new` below the one of `of`, if any. split: the same, said of a label. merge: those of `of` become
    `new`. rename: that of `of` is called as in `new`. retire: those of `of` are hidden."""

    what: str
    of: tuple[int, ...] = ()
    new: tuple[tuple[int, str], ...] = ()

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_plain(cls, said: Any) -> Change:
        """What `plain` gave, from a file of anybody's making; what is wrong with it is a ValueError."""
        if not isinstance(said, dict) or set(said) != {"what", "of", "new"} or said["what"] not in WHAT:
            raise ValueError("it is no change of the vocabulary")
        numbers, new = said["of"], said["new"]
        if not isinstance(numbers, list) or not isinstance(new, list):
            raise ValueError("it is no change of the vocabulary")
        pairs = [one for one in new if isinstance(one, list) and len(one) == 2 and _is_number(one[0])]
        if not all(map(_is_number, numbers)) or len(pairs) < len(new) or not all(isinstance(b, str) for _, b in pairs):
            raise ValueError("its labels are not numbers and names")
        return cls(said["what"], tuple(numbers), tuple((number, name) for number, name in pairs))


@dataclass(frozen=True)
class Label:
    """One label. `hidden`: why it is no column, where it is none. `called`: its names, the last one is that of now."""

    number: int
    called: tuple[str, ...]
    parent: int | None = None
    parts: tuple[int, ...] = ()  # those that were merged into it
    hidden: str = ""

    @property
    def name(self) -> str:
        return self.called[-1]


@dataclass(frozen=True)
class Vocabulary:
    """All labels that there ever were, by number; `version` is the batch of the last change."""

    labels: Mapping[int, Label] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0

    @property
    def shown(self) -> tuple[Label, ...]:
        """Those that are columns, in order."""
        return tuple(one for one in self.labels.values() if not one.hidden)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.shown)

    def hierarchy(self) -> Hierarchy | None:
        """Child -> nearest parent that is shown; None where there is none."""
        pairs, nearest = {}, dict[int, int | None]()  # of hidden labels, the nearest one above that is shown
        depths = self.depths()
        for one in sorted(self.labels.values(), key=lambda label: depths[label.number]):
            above = one.parent
            if above is not None and self.labels[above].hidden:
                above = nearest[above]
            nearest[one.number] = above
        for one in self.shown:
            if (above := nearest[one.number]) is not None:
                pairs[one.name] = self.labels[above].name
        return Hierarchy(pairs) if pairs else None

    def numbers(self, names: Iterable[str]) -> list[int]:
        """The labels of these names; all that are not there in one message."""
        at = {one.name: one.number for one in self.shown}
        names = list(names)
        lost = list(dict.fromkeys(name for name in names if name not in at))
        if lost:
            told = (f"{name!r}: {self._gone(name)}{did_you_mean(name, at)}" for name in lost)
            raise LabelError(f"{len(lost)} labels are not in the vocabulary" + listing(told, len(lost)))
        return [at[name] for name in names]

    def _gone(self, name: str) -> str:
        for one in self.labels.values():
            if one.hidden and one.name == name:
                return f"{one.hidden}."
            if name in one.called[:-1]:
                return f"is called {one.name!r} now."
        return "never was."

    def sources(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        """For each label that is shown, whose weights a model of the labels `names` has for it: positions in `names` of
        the label itself, under whatever name it had; else of what was merged into it; else of the nearest one above."""
        at = {name: j for j, name in enumerate(names)}

        def own(one: Label) -> tuple[int, ...]:
            found = [at[name] for name in reversed(one.called) if name in at]
            if found:
                return (found[0],)
            return tuple(j for part in one.parts for j in own(self.labels[part]))

        def nearest(one: Label | None) -> tuple[int, ...]:
            while one is not None:
                if found := own(one):
                    return found
                one = None if one.parent is None else self.labels[one.parent]
            return ()

        return [nearest(one) for one in self.shown]

    # ---------------------------------------------------------------- changes

    def changed(self, changes: Iterable[Change], version: int) -> Vocabulary:
        """After these changes, of one batch; refused where they cannot be."""
        labels = dict(self.labels)
        for change in changes:
            apply(labels, change)
        after = Vocabulary(MappingProxyType(labels), version)
        check_names(after.names)
        return after

    def above(self, number: int) -> list[int]:
        """All labels above this one, the nearest first."""
        way: dict[int, None] = {}  # a set in the order of its elements
        up = self.labels[number].parent
        while up is not None and up not in way:
            way[up] = None
            up = self.labels[up].parent
        return list(way)

    def depths(self) -> dict[int, int]:
        """How many labels are above each."""
        found: dict[int, int] = {}
        for number in self.labels:
            way = [number]
            while way[-1] not in found and (up := self.labels[way[-1]].parent) is not None:
                way.append(up)
                if len(way) > len(self.labels):
                    raise LabelError(f"label {number} is above itself: damaged.")
            start = found.get(way[-1], 0)
            found |= {one: start + step for step, one in enumerate(reversed(way))}
        return found

    def merge(self, parts: Sequence[int], number: int, name: str) -> Change:
        """Refused where one of the parts is above another: it would be below itself."""
        if len(set(parts)) < 2:
            raise LabelError(f"merge: takes two labels or more, to be called {name!r}; rename is for one.")
        for part in parts:
            for up in self.above(part):
                if up in parts:
                    low, high = self.labels[part].name, self.labels[up].name
                    raise LabelError(
                        f"merge: {high!r} is above {low!r}, which says all there is to say. Retire one of them instead."
                    )
        return Change("merge", tuple(parts), ((number, name),))


def apply(labels: dict[int, Label], change: Change) -> None:
    """Change labels in place; refused where it cannot be."""
    if strange := [number for number in change.of if number not in labels]:
        raise LabelError(f"{change.what}: builds on labels that are not there ({', '.join(map(str, strange))}).")
    if change.what == "rename":
        number, name = change.new[0]
        if change.of != (number,):
            raise LabelError("rename: of one label, under its own number.")
        labels[number] = replace(labels[number], called=(*labels[number].called, name))
    elif change.what == "retire":
        for number in change.of:
            labels[number] = replace(labels[number], hidden="was retired")
    else:
        if taken := [number for number, _ in change.new if number in labels]:
            raise LabelError(f"{change.what}: numbers that are taken ({', '.join(map(str, taken))}).")
        (_merge if change.what == "merge" else _add)(labels, change)


def _add(labels: dict[int, Label], change: Change) -> None:
    if len(change.of) > 1 or (change.what == "split" and not change.of):
        raise LabelError(f"{change.what}: below one label.")
    parent = change.of[0] if change.of else None
    for number, name in change.new:
        labels[number] = Label(number, (name,), parent)


def _merge(labels: dict[int, Label], change: Change) -> None:
    if len(change.new) != 1 or len(set(change.of)) < 2:
        raise LabelError("merge: two labels or more become one.")
    number, name = change.new[0]
    parents = {labels[part].parent for part in change.of}
    labels[number] = Label(number, (name,), parents.pop() if len(parents) == 1 else None, change.of)
    for part in change.of:
        labels[part] = replace(labels[part], hidden=f"was merged into {name!r}")
    for one in list(labels.values()):
        if one.parent in change.of:
            labels[one.number] = replace(one, parent=number)


def refuse_taken(there: Vocabulary, names: Sequence[str], but: Iterable[str] = ()) -> None:
    """Names that a new label cannot have, since another one has them."""
    folded = {fold(name): name for name in there.names if name not in set(but)}
    taken = [f"{name!r}: there is {folded[fold(name)]!r}" for name in names if fold(name) in folded]
    if taken:
        raise LabelError("Names that labels have already" + listing(taken, len(taken)))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
