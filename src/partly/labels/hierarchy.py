"""Hierarchy of labels, and the entries that follow from it."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, listing
from partly.labels.label_graph import ParentNames, check_parents, sort_topologically
from partly.labels.labels import Labels
from partly.labels.matrix import Ternary, blocks
from partly.labels.names import Names, fold


@dataclass(frozen=True, repr=False)
class Hierarchy:
    """A hierarchy of labels of any depth, child -> parent: Hierarchy({"cat": "animal", "dog": "animal"}).

    A yes for a child implies a yes for all its parents, and a no for a parent a no for all its children. A label may
    have several parents, as in the Gene Ontology. Labels need not have a column for every name; missing ones count as
    unknown. Labels outside the hierarchy are not changed.

    Parameters
    ----------
    parents : {child: parent, or list of parents}
        Parents of each child. The attribute holds a name for one parent, and a tuple for several.

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
    >>> partly.Hierarchy({"house cat": ["cat", "pet"], "cat": "animal"}).ancestors("house cat")
    ('cat', 'pet', 'animal')
    """

    parents: Mapping[str, ParentNames]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parents", MappingProxyType(check_parents(self.parents)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Hierarchy, (dict(self.parents),)  # a read-only mapping cannot be copied

    def __repr__(self) -> str:
        return f"Hierarchy({len(self.names)} labels: {len(self.roots)} roots, {len(self.leaves)} leaves)"

    # ---------------------------------------------------------------- structure

    @cached_property
    def roots(self) -> Names:
        """Names without a parent, in order of appearance."""
        above = (parent for child in self.parents for parent in self.parents_of(child))
        return tuple(dict.fromkeys(parent for parent in above if parent not in self.parents))

    @cached_property
    def names(self) -> Names:
        """All names, every parent before its children."""
        return sort_topologically(self.roots, {child: self.parents_of(child) for child in self.parents})

    @cached_property
    def children(self) -> Mapping[str, Names]:
        """Children of each name that has some; every parent comes before its children."""
        below: dict[str, list[str]] = {}
        for child in self.parents:
            for parent in self.parents_of(child):
                below.setdefault(parent, []).append(child)
        return MappingProxyType({name: tuple(below[name]) for name in self.names if name in below})

    @cached_property
    def leaves(self) -> Names:
        """Names without children."""
        return tuple(name for name in self.names if name not in self.children)

    @cached_property
    def is_forest(self) -> bool:
        """True if no label has several parents."""
        return all(isinstance(above, str) for above in self.parents.values())

    def parents_of(self, name: str) -> Names:
        """Return the parents of a name; none for a root."""
        above = self.parents.get(name, ())
        return (above,) if isinstance(above, str) else above

    def ancestors(self, name: str) -> Names:
        """Return all names above this one, each once, the nearest first."""
        ancestors = dict.fromkeys(self.parents_of(name))
        queue = list(ancestors)
        for above in queue:  # grows as it goes
            new = [parent for parent in self.parents_of(above) if parent not in ancestors]
            ancestors.update(dict.fromkeys(new))
            queue += new
        return tuple(ancestors)

    def nearest(self, name: str, names: Container[str]) -> Names:
        """Return the nearest ancestors that are among `names`, one or more for each way up."""
        found, queue = dict[str, None](), list(self.parents_of(name))
        for above in queue:  # grows as it goes
            if above in names:
                found[above] = None
            else:
                queue += [parent for parent in self.parents_of(above) if parent not in queue]
        return tuple(found)

    def restrict(self, names: Names) -> Hierarchy | None:
        """Return the hierarchy among these names, each below its nearest ancestors; None if nothing is left."""
        remaining = set(names)
        parents = {name: above for name in names if (above := self.nearest(name, remaining))}
        return Hierarchy(parents) if parents else None

    def single_parents(self, user: str) -> dict[str, str]:
        """Return child -> parent for a user that can hold one parent only.

        Raises
        ------
        LabelError
            If a label has several parents.
        """
        several = [
            f"{child!r}: {', '.join(above)}" for child, above in self.parents.items() if len(self.parents_of(child)) > 1
        ]
        if several:
            raise LabelError(
                f"{user} holds one parent for each label; these have several"
                + listing(several, len(several))
                + "\nKeep one parent of each, or give the hierarchy in a table with the columns child and parent."
            )
        return {child: self.parents_of(child)[0] for child in self.parents}

    def lines(self, names: Names) -> list[tuple[int, int]]:
        """Return the positions (descendant, ancestor) of all pairs among `names`."""
        at = {name: i for i, name in enumerate(names)}
        inside = filter(at.__contains__, self.parents)
        return [(at[name], at[above]) for name in inside for above in self.ancestors(name) if above in at]

    def above(self, names: Names) -> tuple[int, ...]:
        """Return the position of the first parent of each label; its own position if it has none.

        Raises
        ------
        LabelError
            If a parent is not among the labels, or no label has a parent.
        """
        return self.parent_positions(names)[0]

    def parent_positions(self, names: Names) -> tuple[tuple[int, ...], ...]:
        """Return rows over the labels: in row k the position of the k-th parent, or the label's own if it has fewer.

        Raises
        ------
        LabelError
            If a parent is not among the labels, or no label has a parent.
        """
        self._columns(names)
        at = {name: j for j, name in enumerate(names)}
        pairs = [(child, parent) for child in self.parents if child in at for parent in self.parents_of(child)]
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
        above = [self.parents_of(name) for name in names]
        return tuple(
            tuple(at[parents[k]] if k < len(parents) else j for j, parents in enumerate(above))
            for k in range(max(map(len, above), default=1) or 1)
        )

    # ---------------------------------------------------------------- inference

    def check(self, labels: Labels) -> None:
        """Raise LabelError if a label is yes below a label that is no."""
        present, columns = self._columns(labels.names)
        contradictions: list[tuple[int, int]] = []
        for block in blocks(labels.shape):
            w = self._wide(labels.rows(block), present, columns)
            under_no = w == -1  # where the nearest known label upwards, the label itself included, is no on some way
            for child, parent in self._steps:
                wrong = np.flatnonzero((w[child] == 1) & under_no[parent])
                contradictions += [(block.start + int(item), child) for item in wrong]
                under_no[child] |= (w[child] == 0) & under_no[parent]
        if contradictions:
            contradictions = sorted(set(contradictions))
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
            self._raise_yes(w)
            for child, parent in self._steps:
                w[child, w[parent] == -1] = -1
            while last_child and self._last_children(w) and not self.is_forest:
                self._raise_yes(w)  # of its other parents
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

    def _raise_yes(self, w: Ternary) -> None:
        """Set all labels above a yes to yes."""
        for child, parent in reversed(self._steps):
            w[parent, w[child] == 1] = 1

    def _last_children(self, w: Ternary) -> bool:
        """Set the last child of a yes that can be yes; tell whether there was one."""
        changed = False
        for parent, children in self._families:
            below = w[children]
            alone = ((below == 0).sum(axis=0) == 1) & ((below == 1).sum(axis=0) == 0) & (w[parent] == 1)
            w[children] = np.where(alone & (below == 0), 1, below)
            changed = changed or bool(alone.any())
        return changed

    def _contradiction(self, labels: Labels, item: int, name: str) -> str:
        values = dict(zip(labels.names, labels.rows([item])[0], strict=True))
        paths = [[name]]
        while values.get(paths[-1][-1], 0) != -1:  # depth first, upwards through what is unknown
            path = paths.pop()
            upwards = reversed(self.parents_of(path[-1])) if len(path) == 1 or not values.get(path[-1], 0) else ()
            paths += [[*path, parent] for parent in upwards]
        return f"{name!r} is yes and {paths[-1][-1]!r} is no ({' -> '.join(paths[-1])})"


def as_hierarchy(value: Any) -> Hierarchy:
    """Return a hierarchy, built from a mapping child -> parent if necessary."""
    return value if isinstance(value, Hierarchy) else Hierarchy(value)
