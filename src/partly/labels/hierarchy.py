"""Hierarchy of labels, and the entries that follow from it."""

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
    """A forest of labels of any depth, child -> parent: Hierarchy({"cat": "animal", "dog": "animal"}).

    A yes for a child implies a yes for its parent, and a no for a parent a no for all its children. Labels need not
    have a column for every name; missing ones count as unknown. Labels outside the hierarchy are not changed.

    Parameters
    ----------
    parents : {child: parent}
        Parent of each child.

    Raises
    ------
    LabelError
        If a name is not text, or there is a cycle.

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

    # ---------------------------------------------------------------- structure

    @cached_property
    def roots(self) -> Names:
        """Names without a parent, in order of appearance."""
        return tuple(dict.fromkeys(p for p in self.parents.values() if p not in self.parents))

    @cached_property
    def children(self) -> Mapping[str, Names]:
        """Children of each name that has some; every parent comes before its children."""
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
        """Names without children."""
        return tuple(name for name in self.names if name not in self.children)

    def lines(self, names: Names) -> list[tuple[int, int]]:
        """Return the positions (descendant, ancestor) of all pairs among `names`."""
        at = {name: i for i, name in enumerate(names)}
        pairs = []
        for name in filter(at.__contains__, self.parents):
            above = name
            while above in self.parents:
                above = self.parents[above]
                pairs += [(at[name], at[above])] if above in at else []
        return pairs

    def above(self, names: Names) -> tuple[int, ...]:
        """Return the position of the parent of each label; its own position if it has none.

        Raises
        ------
        LabelError
            If a parent is not among the labels, or no label has a parent.
        """
        self._columns(names)
        at = {name: j for j, name in enumerate(names)}
        pairs = [(child, parent) for child, parent in self.parents.items() if child in at]
        missing = [f"{child!r} -> {parent!r}" for child, parent in pairs if parent not in at]
        if missing:
            raise LabelError(
                f"{len(missing)} of {len(pairs)} labels have a parent in the hierarchy that is no label here"
                + listing(missing, len(missing))
                + "\nAdd a column for each parent (it may be unknown everywhere: what follows is filled in), or leave "
                "these pairs out of the hierarchy."
            )
        if self.parents and not pairs:
            raise LabelError(
                f"The hierarchy says nothing about these {len(names)} labels: none of them has a parent in it "
                f"({', '.join(f'{child!r} -> {parent!r}' for child, parent in list(self.parents.items())[:3])}, ...). "
                "Leave it out, or give the labels below."
            )
        return tuple(at[self.parents[name]] if name in self.parents else j for j, name in enumerate(names))

    # ---------------------------------------------------------------- inference

    def check(self, labels: Labels) -> None:
        """Raise LabelError if a label is yes below a label that is no."""
        present, columns = self._columns(labels.names)
        contradictions: list[tuple[int, int]] = []
        for block in blocks(labels.shape):
            w = self._wide(labels.rows(block), present, columns)
            nearest = w.copy()  # value of the nearest known label: the label itself or an ancestor
            for child, parent in self._steps:
                wrong = np.flatnonzero((w[child] == 1) & (nearest[parent] == -1))
                contradictions += [(block.start + int(item), child) for item in wrong]
                nearest[child] = np.where(w[child] == 0, nearest[parent], w[child])
        if contradictions:
            contradictions.sort()
            ids = labels.ids
            lines = (f"item {ids[i]!r}: {self._contradiction(labels, i, self.names[c])}" for i, c in contradictions)
            raise LabelError(
                f"{len(contradictions)} labels are yes below a label that is no; correct one of the two"
                + listing(lines, len(contradictions))
            )

    def deduce(self, labels: Labels, last_child: bool = False, items: npt.ArrayLike | None = None) -> Labels:
        """Add the entries that follow from the hierarchy: no below a no, yes above a yes. Known entries stay.

        Parameters
        ----------
        labels : Labels
            Known labels.
        last_child : bool
            Assume that a yes has a yes among its children: if all children but one are no, that one is yes.
        items : array of positions, optional
            Items with new entries; only these are updated.

        Returns
        -------
        Labels
            Labels with the added entries.

        Raises
        ------
        LabelError
            If labels contradict the hierarchy.
        """
        if items is not None:
            chosen = np.unique(np.asarray(items, np.int64))
            part = self.deduce(labels[chosen], last_child).rows(slice(None))
            row, column = np.nonzero(part != labels.rows(chosen))
            return labels.with_entries(chosen[row], column, part[row, column])
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
        """Return labels over the coarse names (the keys of `children`, in that order).

        A coarse label keeps its known value; otherwise it is yes if one of its children is yes, no if all are no, and
        unknown if not. A child without a column is unknown.

        Raises
        ------
        LabelError
            If labels contradict the hierarchy.
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
        """Positions (parent, its children), from the top down."""
        at = {name: i for i, name in enumerate(self.names)}
        return [(at[name], [at[child] for child in children]) for name, children in self.children.items()]

    @cached_property
    def _steps(self) -> list[tuple[int, int]]:
        """Positions (child, parent), from the top down."""
        return [(child, parent) for parent, children in self._families for child in children]

    def _columns(self, labels: Names) -> tuple[list[int], list[int]]:
        """Return positions in `names` and columns in the labels of the names that both have."""
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
        """Return z [B, L] as [names, B], unknown for names without a column."""
        w = np.zeros((len(self.names), len(z)), np.int8)
        w[have] = z.T[where]
        return w

    def _last_children(self, w: Ternary) -> None:
        for parent, children in self._families:
            below = w[children]
            alone = ((below == 0).sum(axis=0) == 1) & ((below == 1).sum(axis=0) == 0) & (w[parent] == 1)
            w[children] = np.where(alone & (below == 0), 1, below)

    def _contradiction(self, labels: Labels, item: int, name: str) -> str:
        values = dict(zip(labels.names, labels.rows([item])[0], strict=True))
        path = [name]
        while values.get(path[-1], 0) != -1:
            path.append(self.parents[path[-1]])
        return f"{name!r} is yes and {path[-1]!r} is no ({' -> '.join(path)})"


def as_hierarchy(value: Any) -> Hierarchy:
    """Return a hierarchy, built from a mapping child -> parent if necessary."""
    return value if isinstance(value, Hierarchy) else Hierarchy(value)


def _cycles(parents: Mapping[str, str]) -> Iterator[str]:
    """Yield each cycle once, as text: a -> b -> a."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, None] = {}
        name = start
        while name in parents and name not in done and name not in path:
            path[name] = None
            name = parents[name]
        if name in path:
            cycle = list(path)[list(path).index(name) :]
            yield " -> ".join([*cycle, name])
        done |= path.keys()
