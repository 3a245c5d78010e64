"""From statements to entries: who is believed, and what follows from it. Pure functions of arrays.

The policy. A voice is somebody who says something: a person, an import, a rule, the run of a model. Of each voice the
latest statement about an entry counts, and what it said before does not. People stand before imports and rules, these
before models: the voices of the highest rank that said something of an entry decide it.

- latest: of those voices, the one that spoke last.
- majority: among people, what more of them say; as many yes as no leave it unknown. Of other ranks, who spoke last.
- "Cannot tell" is no vote: where others of the same rank say yes or no, that stands. Where nobody of the rank does, the
  entry is unknown, and no lower rank fills it: somebody looked, and a guess knows no better.

What follows: below a no everything is no and above a yes everything is yes; of labels that were merged, a yes of one is
a yes, and a no takes a no of all. What follows has the rank of what it follows from, and stands only over what has a
lower rank, or says nothing at the same rank. So no statement of a person is ever overruled by what follows from that of
a model, and two people who contradict each other over a hierarchy both stay, and are listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.ledger.vocabulary import Vocabulary

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int8]
Flags = npt.NDArray[np.bool_]
RANKS = {"person": 3, "import": 2, "rule": 2, "model": 1}
POLICIES = ("latest", "majority")
PERSON = RANKS["person"]
CELLS = 1 << 22  # entries that are made dense at a time


@dataclass(frozen=True)
class Statements:
    """Statements, each batch after those before it: item, label and batch [K], z [K] (+1, -1, 0 cannot tell), and who
    said it: the voice and its rank [K]."""

    item: Ints
    label: Ints
    z: Small
    voice: Ints
    rank: Small


@dataclass(frozen=True)
class Entries:
    """Entries in reading order: item, label, z [E] (0: unknown, although something was said), the rank of what decided,
    and whether some voices say yes and some no, or the entry contradicts another one."""

    item: Ints
    label: Ints
    z: Small
    rank: Small
    torn: Flags


def fold(said: Statements, policy: str) -> Entries:
    """What is said of each entry by itself. The work is by the number of statements; those of entries about which
    nobody spoke twice, which are most, are only sorted."""
    width = int(said.label.max()) + 1 if len(said.label) else 1
    key = said.item * width + said.label
    order = np.argsort(key, kind="stable")  # of one entry, in the order in which it was said
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.empty(0, np.int64)
    counts = np.diff(np.r_[first, len(key)])
    z, rank, torn = said.z[order[first]], said.rank[order[first]], np.zeros(len(first), bool)
    many = np.flatnonzero(counts > 1)
    if len(many):
        picked = order[np.repeat(counts > 1, counts)]
        entry = np.repeat(np.arange(len(many)), counts[many])
        z[many], rank[many], torn[many] = _decided(entry, said.voice[picked], said.z[picked], said.rank[picked], policy)
    return Entries(key[first] // width, key[first] % width, z, rank, torn)


def _decided(entry: Ints, voice: Ints, z: Small, rank: Small, policy: str) -> tuple[Small, Small, Flags]:
    """z, rank and whether voices differ, of entries 0, 1, ..., whose statements stand in the order of time."""
    current = _current(entry, voice)
    entry, z, rank = entry[current], z[current], rank[current]
    start = np.flatnonzero(np.r_[True, entry[1:] != entry[:-1]])
    torn = (np.maximum.reduceat(z, start) == 1) & (np.minimum.reduceat(z, start) == -1)
    top = np.maximum.reduceat(rank, start)
    votes = np.where(rank == top[entry], z, 0)
    place = np.where(votes != 0, np.arange(len(votes)), -1)
    last = np.maximum.reduceat(place, start)
    found = np.where(last >= 0, votes[last], 0)
    if policy == "majority":
        sums = np.add.reduceat(votes.astype(np.int64), start)
        found = np.where(top == PERSON, np.sign(sums), found)
    return found.astype(np.int8), top, torn


def _current(entry: Ints, voice: Ints) -> Ints:
    """Which statements are the last of their voice about their entry; in their order."""
    order = np.lexsort((voice, entry))  # stable: equal ones stay in the order of time
    last = np.r_[(entry[order][1:] != entry[order][:-1]) | (voice[order][1:] != voice[order][:-1]), True]
    return np.sort(order[last])


# ---------------------------------------------------------------- what follows


def consequences(entries: Entries, vocabulary: Vocabulary) -> Entries:
    """With what follows from the hierarchy and from merges; the labels concerned are made dense, block by block."""
    related = _related(vocabulary)
    if not related or not len(entries.item):
        return entries
    column = {number: j for j, number in enumerate(related)}
    inside = np.isin(entries.label, related)
    places = np.full(max(int(entries.label.max()), related[-1]) + 1, -1)
    places[related] = np.arange(len(related))
    rest = [_picked(entries, ~inside)]
    touched = _picked(entries, inside)
    items, row = np.unique(touched.item, return_inverse=True)
    step = max(1, CELLS // len(related))
    for begin in range(0, len(items), step):
        here = slice(*np.searchsorted(row, [begin, begin + step]))
        block = _Block(items[begin : begin + step], len(related))
        block.fill(row[here] - begin, places[touched.label[here]], _picked(touched, here))
        _follow(block, vocabulary, column)
        rest.append(block.entries(np.array(related)))
    joined = Entries(*(np.concatenate(parts) for parts in zip(*(vars(one).values() for one in rest), strict=True)))
    return _picked(joined, np.lexsort((joined.label, joined.item)))


def _related(vocabulary: Vocabulary) -> list[int]:
    """Labels from which something follows, or of which something does."""
    found = set()
    for one in vocabulary.labels.values():
        if one.parent is not None:
            found |= {one.number, one.parent}
        if one.parts:
            found |= {one.number, *one.parts}
    return sorted(found)


def _picked(entries: Entries, index: Flags | Ints | slice) -> Entries:
    return Entries(*(part[index] for part in vars(entries).values()))


class _Block:
    """Some items x labels: z, rank (0: nothing is said) and torn, dense [labels, items]."""

    def __init__(self, items: Ints, width: int) -> None:
        self.items = items
        self.z, self.rank = (np.zeros((width, len(items)), np.int8) for _ in range(2))
        self.torn = np.zeros((width, len(items)), bool)

    def fill(self, row: Ints, column: Ints, entries: Entries) -> None:
        self.z[column, row], self.rank[column, row], self.torn[column, row] = entries.z, entries.rank, entries.torn

    def tell(self, column: int, z: int, rank: Small) -> None:
        """What follows for one label: z, with this rank where it is above 0."""
        own, said = self.z[column], self.rank[column]
        self.torn[column] |= (rank > 0) & (own == -z)
        stands = (rank > said) | ((own == 0) & (rank >= said) & (rank > 0))
        own[stands], said[stands] = z, rank[stands]

    def entries(self, labels: Ints) -> Entries:
        row, column = np.nonzero(self.rank.T)
        z, rank, torn = self.z.T[row, column], self.rank.T[row, column], self.torn.T[row, column]
        return Entries(self.items[row], labels[column], z, rank, torn)


def _follow(block: _Block, vocabulary: Vocabulary, column: dict[int, int]) -> None:
    """The hierarchy before merges, since a part may follow from it; and after them, since more may follow from that."""
    steps = _steps(vocabulary, column)
    _closed(block, steps)
    for one in vocabulary.labels.values():  # parts before what they became
        if one.parts:
            parts = [column[part] for part in one.parts]
            z, rank = block.z[parts], block.rank[parts]
            block.tell(column[one.number], 1, np.where(z == 1, rank, 0).max(axis=0))
            block.tell(column[one.number], -1, np.where((z == -1).all(axis=0), rank.min(axis=0), 0).astype(np.int8))
    _closed(block, steps)


def _steps(vocabulary: Vocabulary, column: dict[int, int]) -> list[tuple[int, int]]:
    """(child, parent), from the top down."""
    pairs = [(one.number, one.parent) for one in vocabulary.labels.values() if one.parent is not None]
    depths = vocabulary.depths()
    pairs.sort(key=lambda pair: depths[pair[0]])
    return [(column[child], column[parent]) for child, parent in pairs]


def _closed(block: _Block, steps: Sequence[tuple[int, int]]) -> None:
    for child, parent in reversed(steps):
        block.tell(parent, 1, np.where(block.z[child] == 1, block.rank[child], 0).astype(np.int8))
    for child, parent in steps:
        block.tell(child, -1, np.where(block.z[parent] == -1, block.rank[parent], 0).astype(np.int8))
