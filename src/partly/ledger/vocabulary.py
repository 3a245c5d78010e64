"""The vocabulary of a ledger: its labels, as the result of changes.

A label keeps its number when it is renamed, so its statements stay. A label that is split becomes the parent of its
parts and keeps its statements. A label that is merged or retired is hidden; its statements still count where they imply
something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

from partly.errors import LabelError, did_you_mean, listing
from partly.labels import Hierarchy
from partly.labels.names import check_names, fold

KINDS = ("add", "split", "merge", "rename", "retire")


@dataclass(frozen=True)
class Change:
    """A change of the vocabulary. `of`: numbers of existing labels; `new`: (number, name) pairs.

    add and split: `new` become children of `of`; merge: `new` replaces `of`; rename: `new` holds the new name of `of`;
    retire: hides `of`.
    """

    what: str
    of: tuple[int, ...] = ()
    new: tuple[tuple[int, str], ...] = ()

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_plain(cls, stored: Any) -> Change:
        """Parse what `plain` returned, from an untrusted file; raise ValueError if it is invalid."""
        if not isinstance(stored, dict) or set(stored) != {"what", "of", "new"} or stored["what"] not in KINDS:
            raise ValueError("it is not a change of the vocabulary")
        numbers, new = stored["of"], stored["new"]
        if not isinstance(numbers, list) or not isinstance(new, list):
            raise ValueError("it is not a change of the vocabulary")
        pairs = [pair for pair in new if isinstance(pair, list) and len(pair) == 2 and _is_number(pair[0])]
        if not all(map(_is_number, numbers)) or len(pairs) < len(new) or not all(isinstance(b, str) for _, b in pairs):
            raise ValueError("its labels are not pairs of number and name")
        return cls(stored["what"], tuple(numbers), tuple((number, name) for number, name in pairs))


@dataclass(frozen=True)
class Label:
    """A label. `called`: all of its names, the current one last. `hidden`: why it is not shown, or empty."""

    number: int
    called: tuple[str, ...]
    parent: int | None = None
    parts: tuple[int, ...] = ()  # labels that were merged into it
    hidden: str = ""

    @property
    def name(self) -> str:
        return self.called[-1]


@dataclass(frozen=True)
class Vocabulary:
    """All labels that ever existed, by number; `version` is the batch of the last change."""

    labels: Mapping[int, Label] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0

    @property
    def visible_labels(self) -> tuple[Label, ...]:
        """Labels that are not hidden, in order."""
        return tuple(label for label in self.labels.values() if not label.hidden)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(label.name for label in self.visible_labels)

    def hierarchy(self) -> Hierarchy | None:
        """Return the hierarchy of visible labels, each below its nearest visible ancestor; None if no label has one."""
        parents, nearest = {}, dict[int, int | None]()  # nearest visible ancestor of each label
        depths = self.depths()
        for label in sorted(self.labels.values(), key=lambda label: depths[label.number]):
            ancestor = label.parent
            if ancestor is not None and self.labels[ancestor].hidden:
                ancestor = nearest[ancestor]
            nearest[label.number] = ancestor
        for label in self.visible_labels:
            if (ancestor := nearest[label.number]) is not None:
                parents[label.name] = self.labels[ancestor].name
        return Hierarchy(parents) if parents else None

    def numbers(self, names: Iterable[str]) -> list[int]:
        """Return the numbers of labels; list all unknown names in one message."""
        number_of = {label.name: label.number for label in self.visible_labels}
        names = list(names)
        missing = list(dict.fromkeys(name for name in names if name not in number_of))
        if missing:
            reasons = (f"{name!r}: {self._why_missing(name)}{did_you_mean(name, number_of)}" for name in missing)
            raise LabelError(f"{len(missing)} labels are not in the vocabulary" + listing(reasons, len(missing)))
        return [number_of[name] for name in names]

    def _why_missing(self, name: str) -> str:
        for label in self.labels.values():
            if label.hidden and label.name == name:
                return f"{label.hidden}."
            if name in label.called[:-1]:
                return f"is called {label.name!r} now."
        return "never existed."

    def sources(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        """Return, for each visible label, positions in `names` from which a model can take its weights.

        These are the label itself under any of its names, else the labels merged into it, else those of its nearest
        ancestor.
        """
        position = {name: j for j, name in enumerate(names)}

        def own_sources(label: Label) -> tuple[int, ...]:
            positions = [position[name] for name in reversed(label.called) if name in position]
            return (
                (positions[0],)
                if positions
                else tuple(j for part in label.parts for j in own_sources(self.labels[part]))
            )

        def nearest_sources(label: Label | None) -> tuple[int, ...]:
            while label is not None:
                if sources := own_sources(label):
                    return sources
                label = None if label.parent is None else self.labels[label.parent]
            return ()

        return [nearest_sources(label) for label in self.visible_labels]

    # ---------------------------------------------------------------- changes

    def check_changes(self, changes: Iterable[Change]) -> None:
        """Refuse changes that cannot be applied."""
        labels = dict(self.labels)
        for change in changes:
            apply(labels, change)
        check_names(Vocabulary(MappingProxyType(labels)).names)

    def additions(
        self, names: Sequence[str], free: int, hierarchy: Hierarchy | None, parent: str | None
    ) -> list[Change]:
        """Return changes that add labels, numbered from `free`, with parents before their children."""
        parents = {} if hierarchy is None else hierarchy.single_parents("A ledger")
        if hierarchy is not None:
            names = [name for name in dict.fromkeys([*names, *hierarchy.names]) if name not in self.names]
        if parent is not None:
            parents |= dict.fromkeys(names, parent)
        refuse_taken_names(self, names)
        changes, number_of = [], {label.name: label.number for label in self.visible_labels}
        pending = list(names)
        while pending:
            name = next((name for name in pending if parents.get(name) not in pending), pending[0])
            pending.remove(name)
            parent_name = parents.get(name)
            of: tuple[int, ...] = ()
            if parent_name is not None:
                of = (number_of[parent_name] if parent_name in number_of else self.numbers([parent_name])[0],)
            number_of[name] = free + names.index(name)
            changes.append(Change("add", of, ((number_of[name], name),)))
        return changes

    def ancestors(self, number: int) -> list[int]:
        """Return all labels above this one, the nearest first."""
        path: dict[int, None] = {}  # an ordered set
        above = self.labels[number].parent
        while above is not None and above not in path:
            path[above] = None
            above = self.labels[above].parent
        return list(path)

    def depths(self) -> dict[int, int]:
        """Return the number of ancestors of each label."""
        depths: dict[int, int] = {}
        for number in self.labels:
            path = [number]
            while path[-1] not in depths and (above := self.labels[path[-1]].parent) is not None:
                path.append(above)
                if len(path) > len(self.labels):
                    raise LabelError(f"label {number} is its own ancestor: the vocabulary is damaged.")
            start = depths.get(path[-1], 0)
            depths |= {ancestor: start + step for step, ancestor in enumerate(reversed(path))}
        return depths

    def merge(self, parts: Sequence[int], number: int, name: str) -> Change:
        """Return a change that merges labels; refuse a label and its ancestor, which would become its own parent."""
        if len(set(parts)) < 2:
            raise LabelError(f"merge: give two or more labels to become {name!r}, or rename a single one.")
        for part in parts:
            for ancestor in self.ancestors(part):
                if ancestor in parts:
                    low, high = self.labels[part].name, self.labels[ancestor].name
                    raise LabelError(f"merge: {high!r} is above {low!r}. Retire one of them instead.")
        return Change("merge", tuple(parts), ((number, name),))


def apply(labels: dict[int, Label], change: Change) -> None:
    """Change labels in place; refuse a change that cannot be applied."""
    if missing := [number for number in change.of if number not in labels]:
        raise LabelError(f"{change.what}: labels that do not exist ({', '.join(map(str, missing))}).")
    if change.what == "rename":
        number, name = change.new[0]
        if change.of != (number,):
            raise LabelError("rename: takes one label, which keeps its number.")
        labels[number] = replace(labels[number], called=(*labels[number].called, name))
    elif change.what == "retire":
        for number in change.of:
            labels[number] = replace(labels[number], hidden="was retired")
    else:
        if taken := [number for number, _ in change.new if number in labels]:
            raise LabelError(f"{change.what}: numbers that other labels have ({', '.join(map(str, taken))}).")
        (_merge if change.what == "merge" else _add)(labels, change)


def _add(labels: dict[int, Label], change: Change) -> None:
    if len(change.of) > 1 or (change.what == "split" and not change.of):
        raise LabelError(f"{change.what}: new labels have one parent.")
    parent = change.of[0] if change.of else None
    for number, name in change.new:
        labels[number] = Label(number, (name,), parent)


def _merge(labels: dict[int, Label], change: Change) -> None:
    if len(change.new) != 1 or len(set(change.of)) < 2:
        raise LabelError("merge: two or more labels become one.")
    number, name = change.new[0]
    parents = {labels[part].parent for part in change.of}
    labels[number] = Label(number, (name,), parents.pop() if len(parents) == 1 else None, change.of)
    for part in change.of:
        labels[part] = replace(labels[part], hidden=f"was merged into {name!r}")
    for label in list(labels.values()):
        if label.parent in change.of:
            labels[label.number] = replace(label, parent=number)


def refuse_taken_names(vocabulary: Vocabulary, names: Sequence[str], ignore: Iterable[str] = ()) -> None:
    """Refuse names that other labels have, apart from the labels `ignore`."""
    folded = {fold(name): name for name in vocabulary.names if name not in set(ignore)}
    taken = [f"{name!r}: there is {folded[fold(name)]!r}" for name in names if fold(name) in folded]
    if taken:
        raise LabelError("Labels have these names already" + listing(taken, len(taken)))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
