"""Resolve statements into entries: which statement counts, and what it implies. Pure functions of arrays.

A voice is one source: a person, an import, a rule, or the run of a model. Only the latest statement of each voice about
an entry counts. People rank above imports and rules, which rank above models; the highest rank with a statement decides
an entry, by a policy:

- latest: the last statement of that rank.
- majority: among people, the majority; a tie is unknown. Among other ranks, the last statement.
- weighted: within each rank, a vote with the weights that `source_quality` estimates for each voice; a tie is unknown.
  If too few entries have several voices, the majority. A model of weight zero does not vote.
- "Cannot tell" is no vote. Without a yes or no of the rank, the entry is unknown, and no lower rank fills it.

Implied entries: labels below a no are no, and labels above a yes are yes. Of merged labels, a yes of one is a yes, and
a no needs a no of all. An implied value has the rank of its source. It replaces values of a lower rank, and unknown
values of the same rank. So a model's implication never overrules a person, and contradictions stay visible.
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
Floats = npt.NDArray[np.float64]
RANKS = {"person": 3, "import": 2, "rule": 2, "model": 1}
POLICIES = ("latest", "majority", "weighted")
PERSON, MODEL = RANKS["person"], RANKS["model"]
BLOCK_ENTRIES = 1 << 22  # entries that are dense in memory at a time


@dataclass(frozen=True)
class Statements:
    """Statements in the order of their batches, arrays of shape [K]; z: +1, -1, or 0 for "cannot tell"."""

    item: Ints
    label: Ints
    z: Small
    voice: Ints
    rank: Small

    def __getitem__(self, index: Flags | Ints | slice) -> Statements:
        return Statements(*(part[index] for part in vars(self).values()))


@dataclass(frozen=True)
class Entries:
    """Entries in reading order, arrays of shape [E].

    z is 0 where a statement was made but the entry is unknown. `rank`: of the deciding statement. `conflicting`: voices
    say both yes and no, or the entry contradicts another one.
    """

    item: Ints
    label: Ints
    z: Small
    rank: Small
    conflicting: Flags

    def __getitem__(self, index: Flags | Ints | slice) -> Entries:
        return Entries(*(part[index] for part in vars(self).values()))


def concatenate_entries(parts: Sequence[Entries]) -> Entries:
    return Entries(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))


def resolve_entries(statements: Statements, policy: str, weights: Floats | None = None) -> Entries:
    """Resolve each entry by itself. Entries with a single statement, which are most, are only sorted.

    weights: of the policy "weighted", [voices, labels, 2], for a yes and a no; None is the majority.
    """
    votes = None if weights is None else _weigh(statements, weights)
    if policy == "weighted" and votes is None:
        policy = "majority"
    width = int(statements.label.max()) + 1 if len(statements.label) else 1
    key = statements.item * width + statements.label
    order = np.argsort(key, kind="stable")  # statements about one entry stay in the order of time
    key = key[order]
    first = np.flatnonzero(np.r_[True, key[1:] != key[:-1]]) if len(key) else np.empty(0, np.int64)
    counts = np.diff(np.r_[first, len(key)])
    z, rank = statements.z[order[first]], statements.rank[order[first]]
    if votes is not None:
        z[(rank == MODEL) & (votes[order[first]] == 0)] = 0
    conflicting = np.zeros(len(first), bool)
    several = np.flatnonzero(counts > 1)
    if len(several):
        selected = order[np.repeat(counts > 1, counts)]
        entry = np.repeat(np.arange(len(several)), counts[several])
        part = statements[selected]
        chosen = None if votes is None else votes[selected]
        z[several], rank[several], conflicting[several] = _decide(entry, part, policy, chosen)
    return Entries(key[first] // width, key[first] % width, z, rank, conflicting)


def _weigh(statements: Statements, weights: Floats) -> Floats:
    """Return the vote of each statement, [K]: positive for yes, 0 for "cannot tell"."""
    votes = weights[statements.voice, statements.label, np.where(statements.z == 1, 0, 1)]
    weighted: Floats = np.where(statements.z == 0, 0.0, votes)
    return weighted


def _decide(entry: Ints, statements: Statements, policy: str, votes: Floats | None) -> tuple[Small, Small, Flags]:
    """Return z, rank and conflicts of the entries 0, 1, ..., whose statements are in the order of time.

    votes: with weights, of the policy "weighted".
    """
    latest = _latest_of_voices(entry, statements.voice)
    entry, z, rank = entry[latest], statements.z[latest], statements.rank[latest]
    start = np.flatnonzero(np.r_[True, entry[1:] != entry[:-1]])
    conflicting = (np.maximum.reduceat(z, start) == 1) & (np.minimum.reduceat(z, start) == -1)
    top = np.maximum.reduceat(rank, start)
    on_top = np.where(rank == top[entry], z, 0)
    last = np.maximum.reduceat(np.where(on_top != 0, np.arange(len(on_top)), -1), start)
    decided = np.where(last >= 0, on_top[last], 0)
    if votes is not None:
        totals = np.add.reduceat(np.where(on_top != 0, votes[latest], 0.0), start)
        single = np.add.reduceat((on_top != 0).astype(np.int64), start) == 1
        keeps = single & (top != MODEL)  # the only statement of a person or an import stands
        return np.where(keeps, decided, np.sign(totals)).astype(np.int8), top, conflicting
    if policy == "majority":
        sums = np.add.reduceat(on_top.astype(np.int64), start)
        decided = np.where(top == PERSON, np.sign(sums), decided)
    return decided.astype(np.int8), top, conflicting


def _latest_of_voices(entry: Ints, voice: Ints) -> Ints:
    """Return the positions of the last statement of each voice about each entry, in order."""
    order = np.lexsort((voice, entry))  # stable: equal pairs stay in the order of time
    last = np.r_[(entry[order][1:] != entry[order][:-1]) | (voice[order][1:] != voice[order][:-1]), True]
    return np.sort(order[last])


# ---------------------------------------------------------------- implied entries


def add_implied(entries: Entries, vocabulary: Vocabulary) -> Entries:
    """Add what follows from the hierarchy and from merges; related labels are made dense, in blocks of items."""
    related = _find_related_labels(vocabulary)
    if not related or not len(entries.item):
        return entries
    column = {number: j for j, number in enumerate(related)}
    inside = np.isin(entries.label, related)
    places = np.full(max(int(entries.label.max()), related[-1]) + 1, -1)
    places[related] = np.arange(len(related))
    parts, affected = [entries[~inside]], entries[inside]
    items, row = np.unique(affected.item, return_inverse=True)
    step = max(1, BLOCK_ENTRIES // len(related))
    for begin in range(0, len(items), step):
        selected = slice(*np.searchsorted(row, [begin, begin + step]))
        block = _Block(items[begin : begin + step], len(related))
        block.fill(row[selected] - begin, places[affected.label[selected]], affected[selected])
        _imply(block, vocabulary, column)
        parts.append(block.entries(np.array(related)))
    joined = concatenate_entries(parts)
    return joined[np.lexsort((joined.label, joined.item))]


def _find_related_labels(vocabulary: Vocabulary) -> list[int]:
    """Return the labels that imply others or are implied by others."""
    related = set()
    for label in vocabulary.labels.values():
        if label.parent is not None:
            related |= {label.number, label.parent}
        if label.parts:
            related |= {label.number, *label.parts}
    return sorted(related)


class _Block:
    """Dense arrays [labels, items] of some items: z, rank (0: no statement) and conflicts."""

    def __init__(self, items: Ints, width: int) -> None:
        self.items = items
        self.z, self.rank = (np.zeros((width, len(items)), np.int8) for _ in range(2))
        self.conflicting = np.zeros((width, len(items)), bool)

    def fill(self, row: Ints, column: Ints, entries: Entries) -> None:
        self.z[column, row], self.rank[column, row] = entries.z, entries.rank
        self.conflicting[column, row] = entries.conflicting

    def imply(self, column: int, z: int, rank: Small) -> None:
        """Set an implied value of one label, with this rank where it is above 0."""
        current, current_rank = self.z[column], self.rank[column]
        self.conflicting[column] |= (rank > 0) & (current == -z)
        wins = (rank > current_rank) | ((current == 0) & (rank >= current_rank) & (rank > 0))
        current[wins], current_rank[wins] = z, rank[wins]

    def entries(self, labels: Ints) -> Entries:
        row, column = np.nonzero(self.rank.T)
        z, rank = self.z.T[row, column], self.rank.T[row, column]
        return Entries(self.items[row], labels[column], z, rank, self.conflicting.T[row, column])


def _imply(block: _Block, vocabulary: Vocabulary, column: dict[int, int]) -> None:
    """Apply the hierarchy, then merges, whose parts may follow from it, then the hierarchy again."""
    edges = _edges(vocabulary, column)
    _apply_hierarchy(block, edges)
    for label in vocabulary.labels.values():  # parts come before the label that they became
        if label.parts:
            parts, merged = [column[part] for part in label.parts], column[label.number]
            z, rank = block.z[parts], block.rank[parts]
            block.imply(merged, 1, np.where(z == 1, rank, 0).max(axis=0))
            block.imply(merged, -1, np.where((z == -1).all(axis=0), rank.min(axis=0), 0).astype(np.int8))
    _apply_hierarchy(block, edges)


def _edges(vocabulary: Vocabulary, column: dict[int, int]) -> list[tuple[int, int]]:
    """Return (child, parent), from the top down."""
    pairs = [(label.number, label.parent) for label in vocabulary.labels.values() if label.parent is not None]
    depths = vocabulary.depths()
    pairs.sort(key=lambda pair: depths[pair[0]])
    return [(column[child], column[parent]) for child, parent in pairs]


def _apply_hierarchy(block: _Block, edges: Sequence[tuple[int, int]]) -> None:
    for child, parent in reversed(edges):
        block.imply(parent, 1, np.where(block.z[child] == 1, block.rank[child], 0).astype(np.int8))
    for child, parent in edges:
        block.imply(child, -1, np.where(block.z[parent] == -1, block.rank[parent], 0).astype(np.int8))
