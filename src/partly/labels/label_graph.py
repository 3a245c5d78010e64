"""Check and sort a directed acyclic graph of names. Pure functions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from partly.errors import LabelError, listing
from partly.labels.names import Names, check_names

ParentNames = str | Names  # one parent, or several
EXAMPLE = (
    "Give child -> parent: Hierarchy({'cat': 'animal', 'dog': 'animal'}); several parents as a list: "
    "{'cat': ['animal', 'pet']}."
)


def check_parents(parents: Any) -> dict[str, ParentNames]:
    """Return child -> parent, or a tuple of several parents; refuse cycles and names that are not text."""
    if not isinstance(parents, Mapping):
        raise LabelError(f"A hierarchy is a mapping; got {type(parents).__name__}. {EXAMPLE}")
    several = {
        child: tuple(dict.fromkeys(above)) if isinstance(above, list | tuple) and _all_text(above) else (above,)
        for child, above in parents.items()
    }
    bad = [
        f"{child!r}: {parents[child]!r}"
        for child, above in several.items()
        if not _all_text((child, *above)) or not above
    ]
    if bad:
        raise LabelError("A hierarchy names labels by text, not by these" + listing(bad, len(bad)) + f"\n{EXAMPLE}")
    check_names(dict.fromkeys(name for child, above in several.items() for name in (child, *above)))
    cycles = list(find_cycles(several))
    if cycles:
        raise LabelError("No label can be below itself; take one step out of each cycle" + listing(cycles, len(cycles)))
    return {child: above[0] if len(above) == 1 else above for child, above in several.items()}


def find_cycles(parents: Mapping[str, Names]) -> Iterator[str]:
    """Yield each cycle that a walk upwards meets, as text: a -> b -> a."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, Iterator[str]] = {}  # from the start upwards, with the parents still to visit
        name: str | None = start if start not in done else None
        while name is not None or path:
            if name is not None:
                path[name] = iter(parents.get(name, ()))
            last = next(reversed(path))
            name = next(path[last], None)
            if name is None:
                path.popitem()
                done.add(last)
            elif name in path:
                yield " -> ".join([*list(path)[list(path).index(name) :], name])
                name = None
            elif name in done:
                name = None


def sort_topologically(roots: Names, parents: Mapping[str, Names]) -> Names:
    """Return all names, level by level from the roots; each name comes after all its parents."""
    waiting = {child: len(above) for child, above in parents.items()}
    children: dict[str, list[str]] = {}
    for child, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    order, ready = [], deque(roots)
    while ready:
        name = ready.popleft()
        order.append(name)
        for child in children.get(name, ()):
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return tuple(order)


def _all_text(names: Any) -> bool:
    return all(isinstance(name, str) for name in names)
