"""Which questions to pose: those that help most for the time they take, unlike each other, and random ones among them.

- Value: what the query gives an entry, and what it gives those that an answer may settle too. A parent's no settles all
  below it, so it is asked first where it settles much; a child's yes settles all above.
- Cost: the value is divided by the seconds that answers to this label have taken.
- Diversity: greedily the best, where an item that lies near one that was chosen for the same label is worth less.
- For who looks at one item at a time, a share of them comes in bundles: items of which several labels are worth asking.
- The shadow arm: in every ten places, at one that is drawn too, a random unknown entry, which nobody can tell from the
  others. What it brings says what choosing is worth (`worth`).
- Repeats: some questions come again, to the same person or to another, to measure how far answers can be trusted.
- Audits: some are about what models have filled in (`auditing`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.active.selection import Block, select_questions
from partly.active.strategies.diverse import scaled, spread
from partly.clock import Clock
from partly.items import Items
from partly.labels import Hierarchy, Labels
from partly.method import Method

Positions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Entry = tuple[int, int]  # row, column
Lines = list[tuple[int, int]]  # (label, one above it)
WIDER = 8  # so many times the questions wanted are kept for the choice of unlike ones
BUNDLE = 6  # questions about one item, of those that come in bundles
FIELDS = ("rows", "columns", "value", "score", "probability")


@dataclass(frozen=True)
class Candidates:
    """Unknown entries, [n] each."""

    rows: Positions
    columns: Positions
    value: Floats  # by the second
    score: Floats  # of the query
    probability: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Candidates:
        return Candidates(*(getattr(self, name)[index] for name in FIELDS))


@dataclass(frozen=True)
class Wanted:
    """A question to pose."""

    row: int
    column: int
    random: bool
    score: float | None = None
    probability: float | None = None
    repeats: int | None = None
    own: bool | None = None


def candidates(
    query: str,
    method: Method,
    items: Items,
    labels: Labels,
    most: int,
    clock: Clock,
    *,
    lines: Lines,
    seconds: Floats,
    asked: Collection[Entry] = (),
    settings: Mapping[str, Any] | None = None,
) -> Candidates:
    """The unknown entries of the highest value by the second, at most so many; never those that were asked before.
    labels: with what follows from the hierarchy. seconds: that an answer takes, of each label [L]."""

    def rank(block: Block) -> Block:
        score, chance = (block.scores[name].astype(np.float64) for name in ("score", "probability"))
        worth = value(score, chance, block.unknown, lines) / seconds
        return replace(block, scores={"value": worth, "score": score, "probability": chance})

    rows, columns = np.array(list(asked), np.int64).reshape(-1, 2).T
    chosen = select_questions(
        query, method, items, labels, most, clock, asked=(rows, columns), settings=settings, rank=rank
    )
    value_by_second, score, chance = (np.asarray(chosen.scores[name], np.float64) for name in FIELDS[2:])
    return Candidates(chosen.rows, chosen.columns, value_by_second, score, chance)


def value(score: Floats, chance: Floats, unknown: npt.NDArray[np.bool_], lines: Lines) -> Floats:
    """[B, L]: what an entry is worth, with what is expected to be settled along with it: by a no all below it, by a yes
    all above it."""
    found, open_ = score.copy(), np.where(unknown, score, 0.0)
    for below, above in lines:
        found[:, above] += (1 - chance[:, above]) * open_[:, below]
        found[:, below] += chance[:, below] * open_[:, above]
    return found


def unlike(found: Candidates, vectors: Floats, count: int, lines: Lines) -> Candidates:
    """At most so many of them, the best first, no near-twins for one label. vectors: of the item of each, [n, D]. Of a
    label and one above it, which may settle each other, an item is asked one at a time."""
    kin = {pair for line in lines for pair in (line, line[::-1])}

    def out(k: int) -> list[int]:
        here = np.flatnonzero(found.rows == found.rows[k]).tolist()
        return [i for i in here if (int(found.columns[i]), int(found.columns[k])) in kin]

    return found[spread(found.value, found.columns, vectors, count, out)[0]]


def bundles(found: Candidates, count: int, lines: Lines, most: int = BUNDLE) -> Candidates:
    """At most so many of them, in bundles of one item: the items whose best questions are worth most together. A label
    and one above it are not in one bundle."""
    kin = {pair for line in lines for pair in (line, line[::-1])}
    by_item: dict[int, list[int]] = {}
    for k in np.argsort(-found.value, kind="stable").tolist():
        mine = by_item.setdefault(int(found.rows[k]), [])
        if len(mine) < most and not any((int(found.columns[k]), int(found.columns[i])) in kin for i in mine):
            mine.append(k)
    best = sorted(by_item.values(), key=lambda mine: -found.value[mine].sum())
    several = [k for mine in best if len(mine) > 1 for k in mine]
    return found[np.array(several[:count], np.int64)]


def joined(*parts: Candidates) -> Candidates:
    """One after the other; of an entry that is in several, the first."""
    both = Candidates(*(np.concatenate([getattr(one, name) for one in parts]) for name in FIELDS))
    first = {
        entry: k for k, entry in reversed(list(enumerate(zip(both.rows.tolist(), both.columns.tolist(), strict=True))))
    }
    return both[np.sort(np.array(list(first.values()), np.int64))]


def drawn(labels: Labels, count: int, rng: np.random.Generator, asked: Collection[Entry] = ()) -> list[Entry]:
    """Unknown entries, each as likely as any other, none of those asked before; fewer where there are not so many."""
    open_ = labels.shape[1] - labels.known_per_item()
    taken, found = set(asked), []
    tries = 20 * count + 100  # where nearly all was asked, some may be missed for this time
    if not open_.sum():
        return []
    for row in rng.choice(len(labels), tries, p=open_ / open_.sum()).tolist():
        entry = (row, int(rng.choice(np.flatnonzero(labels.rows([row])[0] == 0))))
        if entry not in taken:
            taken.add(entry)
            found.append(entry)
        if len(found) == count:
            break
    return found


def early(able: Sequence[Entry], items: Items, count: int) -> list[Wanted]:
    """At most so many of these entries, before there is a model: about items that are unlike each other, by their
    features; others by their order, since neighbours are often alike."""
    rows, columns = np.array(able, np.int64).reshape(-1, 2).T
    vectors = scaled(items, rows) if items.kind == "features" else rows[:, None].astype(np.float64)
    chosen, worth = spread(np.ones(len(rows)), columns, vectors, count)
    return [Wanted(int(rows[k]), int(columns[k]), False, float(left)) for k, left in zip(chosen, worth, strict=True)]


def mixed(
    best: Sequence[Wanted], random: Sequence[Wanted], again: Sequence[Wanted], rng: np.random.Generator
) -> list[Wanted]:
    """One queue: chosen ones in their order, the others spread evenly over it, each at a place that is drawn within its
    stretch, so that nobody can count to it."""
    total = len(best) + len(random) + len(again)
    guests = [*random, *again]
    rng.shuffle(guests)
    ends = np.linspace(0, total, len(guests) + 1)
    places = [int(rng.integers(int(low), max(int(low) + 1, int(high)))) for low, high in pairwise(ends)]
    at = dict(zip(places, guests, strict=True))
    rest = iter(best)
    return [at[place] if place in at else next(rest) for place in range(total)]


def lines_of(hierarchy: Hierarchy | None, labels: Labels) -> Lines:
    return [] if hierarchy is None else hierarchy.lines(labels.names)


NONE = Candidates(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0))
