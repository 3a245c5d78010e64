"""Hierarchy: which label is part of which coarser one, and what follows from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, listing
from partly.labels.labels import Labels
from partly.labels.matrix import Ternary, blocks
from partly.labels.names import Names, check_names, fold

EXAMPLE = "Give child -> parent, one parent each: Hierarchy({'cat': 'animal', 'dog': 'animal'})."


@dataclass(frozen=True, repr=False)
class Hierarchy:
    """A forest of labels, child -> parent, of any depth: Hierarchy({"cat": "animal", "dog": "animal"}).

    A yes for a child means a yes for its parent, and a no for a parent a no for all its children. Labels need not
    have a column for every name: a name that they lack takes part as one of which nothing is known. Labels that
    are not in the hierarchy are left alone.

    Parameters
    ----------
    parents : {child: parent}
        Cycles are refused.

    Examples
    --------
    >>> import partly
    >>> animals = partly.Hierarchy({"cat": "animal", "dog": "animal"})
    >>> labels = partly.Labels.from_ternary([[0, 0, -1], [1, 0, 0]], names=["cat", "dog", "animal"])
    >>> animals.deduce(labels).ternary()
    array([[-1, -1, -1],
           [ 1,  0,  1]], dtype=int8)
    """

    parents: Mapping[str, str]

    def __post_init__(self) -> None:
        if not isinstance(self.parents, Mapping):
            raise LabelError(f"A hierarchy is a mapping; got {type(self.parents).__name__}. {EXAMPLE}")
        pairs = list(self.parents.items())
        bad = [f"{c!r}: {p!r}" for c, p in pairs if not (isinstance(c, str) and isinstance(p, str))]
        if bad:
            raise LabelError("A hierarchy names labels by text, not by these" + listing(bad, len(bad)) + f"\n{EXAMPLE}")
        check_names(dict.fromkeys(name for pair in pairs for name in pair))
        cycles = list(_cycles(dict(pairs)))
        if cycles:
            raise LabelError(
                "No label can be below itself; take one step out of each cycle" + listing(cycles, len(cycles))
            )
        object.__setattr__(self, "parents", MappingProxyType(dict(pairs)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Hierarchy, (dict(self.parents),)  # a read-only mapping cannot be copied

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.names)} labels: {len(self.roots)} roots, {len(self.leaves)} leaves)"

    # ---------------------------------------------------------------- what is there

    @cached_property
    def roots(self) -> Names:
        """The names that have no parent, in order of appearance."""
        return tuple(dict.fromkeys(p for p in self.parents.values() if p not in self.parents))

    @cached_property
    def children(self) -> Mapping[str, Names]:
        """The children of each coarse name, that is, of each name that has some; every parent before its children."""
        below: dict[str, list[str]] = {}
        for child, parent in self.parents.items():
            below.setdefault(parent, []).append(child)
        order = list(self.roots)
        for name in order:  # grows as it goes: level after level
            order += below.get(name, ())
        return MappingProxyType({name: tuple(below[name]) for name in order if name in below})

    @cached_property
    def names(self) -> Names:
        """All names, every parent before its children."""
        return (*self.roots, *(child for children in self.children.values() for child in children))

    @cached_property
    def leaves(self) -> Names:
        """The fine names: those that have no children."""
        return tuple(name for name in self.names if name not in self.children)

    def lines(self, names: Names) -> list[tuple[int, int]]:
        """(position of a name, position of one above it, however far), for all that are among `names`."""
        at = {name: i for i, name in enumerate(names)}
        pairs = []
        for name in filter(at.__contains__, self.parents):
            above = name
            while above in self.parents:
                above = self.parents[above]
                pairs += [(at[name], at[above])] if above in at else []
        return pairs

    def above(self, names: Names) -> tuple[int, ...]:
        """For each of these labels the position of its parent, its own where it has none.

        Refused where a label is here and its parent is not: then nothing would follow from it, for labels or scores.
        """
        self._columns(names)
        at = {name: j for j, name in enumerate(names)}
        here = [(child, parent) for child, parent in self.parents.items() if child in at]
        missing = [f"{child!r} -> {parent!r}" for child, parent in here if parent not in at]
        if missing:
            raise LabelError(
                f"{len(missing)} of {len(here)} labels have a parent in the hierarchy that is no label here"
                + listing(missing, len(missing))
                + "\nAdd a column for each parent (it may be unknown everywhere: what follows is filled in), or leave "
                "these pairs out of the hierarchy."
            )
        if self.parents and not here:
            raise LabelError(
                f"The hierarchy says nothing about these {len(names)} labels: none of them has a parent in it "
                f"({', '.join(f'{child!r} -> {parent!r}' for child, parent in list(self.parents.items())[:3])}, ...). "
                "Leave it out, or give the labels below."
            )
        return tuple(at[self.parents[name]] if name in self.parents else j for j, name in enumerate(names))

    # ---------------------------------------------------------------- what follows

    def check(self, labels: Labels) -> None:
        """Raise LabelError where a label is yes although one above it is no, with the shortest way up."""
        have, where = self._columns(labels.names)
        found: list[tuple[int, int]] = []
        for block in blocks(labels.shape):
            w = self._wide(labels.rows(block), have, where)
            nearest = w.copy()  # what the nearest known label says: the label itself, else one above it
            for child, parent in self._steps:
                wrong = np.flatnonzero((w[child] == 1) & (nearest[parent] == -1))
                found += [(block.start + int(item), child) for item in wrong]
                nearest[child] = np.where(w[child] == 0, nearest[parent], w[child])
        if found:
            found.sort()
            ids = labels.ids
            lines = (f"item {ids[i]!r}: {self._contradiction(labels, i, self.names[c])}" for i, c in found)
            raise LabelError(
                f"{len(found)} labels are yes below a label that is no; correct one of the two"
                + listing(lines, len(found))
            )

    def deduce(self, labels: Labels, last_child: bool = False, items: npt.ArrayLike | None = None) -> Labels:
        """All that follows: below a no everything is no, above a yes everything is yes. Contradictions raise.

        `last_child` takes it that a yes has a yes among its children: where all of them but one are known to be
        no, that one is yes. What is known stays as it is. `items`: positions of those to look at, where nothing new is
        known of the others; the work is by their number.
        """
        if items is not None:
            some = np.unique(np.asarray(items, np.int64))
            part = self.deduce(labels[some], last_child).rows(slice(None))
            row, column = np.nonzero(part != labels.rows(some))
            return labels.with_entries(some[row], column, part[row, column])
        self.check(labels)
        have, where = self._columns(labels.names)

        def rule(z: Ternary, _: slice) -> Ternary:
            w = self._wide(z, have, where)
            for child, parent in reversed(self._steps):
                w[parent, w[child] == 1] = 1
            for child, parent in self._steps:
                w[child, w[parent] == -1] = -1
            if last_child:
                self._last_children(w)
            result = z.copy()
            result[:, where] = w[have].T
            return result

        return labels.mapped(rule)

    def coarsen(self, labels: Labels) -> Labels:
        """Labels over the coarse names only (the keys of `children`, in that order). Contradictions raise.

        A coarse label is what the labels themselves say of it; else yes if one of its children is yes, no if all are
        known to be no, and unknown otherwise. A child without a column is unknown.
        """
        self.check(labels)
        have, where = self._columns(labels.names)

        def rule(z: Ternary, _: slice) -> Ternary:
            w = self._wide(z, have, where)
            for parent, children in reversed(self._families):
                below = w[children]
                yes, no = (below == 1).any(axis=0), (below == -1).all(axis=0)
                w[parent] = np.select([w[parent] != 0, yes, no], [w[parent], 1, -1], 0)
            return w[[parent for parent, _ in self._families]].T

        return labels.mapped(rule, tuple(self.children))

    # ---------------------------------------------------------------- positions in `names`

    @cached_property
    def _families(self) -> list[tuple[int, list[int]]]:
        """(parent, its children), from the top down."""
        at = {name: i for i, name in enumerate(self.names)}
        return [(at[name], [at[child] for child in children]) for name, children in self.children.items()]

    @cached_property
    def _steps(self) -> list[tuple[int, int]]:
        """(child, parent), from the top down."""
        return [(child, parent) for parent, children in self._families for child in children]

    def _columns(self, labels: Names) -> tuple[list[int], list[int]]:
        """The names that the labels have: their positions in `names`, their columns in the labels."""
        column = {name: j for j, name in enumerate(labels)}
        folded = {fold(name): name for name in labels}
        near = [(n, folded[fold(n)]) for n in self.names if n not in column and fold(n) in folded]
        if near:
            raise LabelError(
                "The hierarchy and the labels must spell their names alike; these differ"
                + listing((f"hierarchy {a!r}, labels {b!r}" for a, b in near), len(near))
            )
        have = [i for i, name in enumerate(self.names) if name in column]
        if self.names and not have:
            raise LabelError(
                f"None of the {len(self.names)} names of the hierarchy ({', '.join(self.names[:3])}, ...) "
                f"is among the {len(column)} of the labels ({', '.join(labels[:3])}, ...)."
            )
        return have, [column[self.names[i]] for i in have]

    def _wide(self, z: Ternary, have: list[int], where: list[int]) -> Ternary:
        """z [B, L] under the names of the hierarchy, unknown where it has no column: [names, B]."""
        w = np.zeros((len(self.names), len(z)), np.int8)
        w[have] = z.T[where]
        return w

    def _last_children(self, w: Ternary) -> None:
        for parent, children in self._families:
            below = w[children]
            alone = ((below == 0).sum(axis=0) == 1) & ((below == 1).sum(axis=0) == 0) & (w[parent] == 1)
            w[children] = np.where(alone & (below == 0), 1, below)

    def _contradiction(self, labels: Labels, item: int, name: str) -> str:
        said = dict(zip(labels.names, labels.rows([item])[0], strict=True))
        way = [name]
        while said.get(way[-1], 0) != -1:
            way.append(self.parents[way[-1]])
        return f"{name!r} is yes and {way[-1]!r} is no ({' -> '.join(way)})"


def as_hierarchy(given: Any) -> Hierarchy:
    """A hierarchy, or the mapping child -> parent that makes one."""
    return given if isinstance(given, Hierarchy) else Hierarchy(given)


def _cycles(parents: Mapping[str, str]) -> Iterator[str]:
    """Each cycle once, as text: a -> b -> a."""
    done: set[str] = set()
    for start in parents:
        way: dict[str, None] = {}
        name = start
        while name in parents and name not in done and name not in way:
            way[name] = None
            name = parents[name]
        if name in way:
            cycle = list(way)[list(way).index(name) :]
            yield " -> ".join([*cycle, name])
        done |= way.keys()
