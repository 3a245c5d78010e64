"""Thresholds from known entries that are known by chance: from which chance on all of yes, or of no, can be filled in.

Zones are nested, from strict to lax: all entries whose chance is at least a threshold. A zone passes where it can be
ruled out, at the given risk, that more entries of it are wrong than the target allows among those to be filled in;
zones are tried in order until one fails. docs/completion.md says why all filled entries then have the promise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.completion.bounds import leading, log_evidence, wrong_p
from partly.completion.entry_scores import Bools, EntryScores, Floats

Counts = npt.NDArray[np.int64]

LEAST = 0.5  # chance below which nothing is filled in
GROWTH = 1.15  # of one zone to the next


@dataclass(frozen=True, eq=False)
class Zones:
    """Zones of one side, strict to lax, counted label by label: [T, L] each, but thresholds [T]. `known`: entries that
    people spoke of, `errors`: those among them that say the opposite, `feared`: as many as chances make one expect,
    `size`: all entries, `open`: to be filled in."""

    value: int
    thresholds: Floats
    known: Counts
    errors: Counts
    feared: Floats
    size: Counts
    open: Counts


@dataclass(frozen=True)
class ZoneDecision:
    """What is filled in as yes (value 1) or as no (-1). threshold: of the chance, None where nothing is; known, errors:
    entries in the zone by which it was judged; expected: wrong ones among the filled; labels: those that the promise
    holds for each by itself; asked: questions that were answered; forced: not certified."""

    value: int
    threshold: float | None
    filled: int = 0
    known: int = 0
    errors: int = 0
    expected: float = 0.0
    labels: tuple[str, ...] = ()
    asked: int = 0
    forced: bool = False

    @property
    def certified(self) -> bool:
        return self.threshold is not None and not self.forced

    @property
    def word(self) -> str:
        return "yes" if self.value == 1 else "no"


def zones_of(board: EntryScores, value: int) -> Zones:
    """The zones of a side, by chances and by what is known, whatever it says."""
    chance, right, wrong = board.of(value)
    inside = (chance >= LEAST) & board.fills
    thresholds = _thresholds(np.sort(chance[inside])[::-1])
    first = np.where(inside, np.searchsorted(-thresholds, -chance), len(thresholds))  # the first zone that has it

    def counted(where: Bools, weights: Floats | None = None) -> npt.NDArray[Any]:
        rows, columns = np.nonzero(where & inside)
        place, width = first[rows, columns], len(board.names)
        each = None if weights is None else weights[rows, columns]
        flat = np.bincount(place * width + columns, each, minlength=len(thresholds) * width)
        return np.cumsum(flat.reshape(len(thresholds), width), axis=0)

    known = right | wrong
    feared = counted(known, 1 - chance)
    return Zones(
        value, thresholds, counted(known), counted(wrong), feared, counted(np.ones_like(inside)), counted(board.open)
    )


def _thresholds(chances: Floats) -> Floats:
    """Of zones that grow by a constant factor to all of these, which are falling."""
    if not len(chances):
        return np.empty(0)
    steps = math.ceil(math.log(len(chances), GROWTH)) if len(chances) > 1 else 0
    sizes = np.unique(np.ceil(len(chances) / GROWTH ** np.arange(steps + 1)).astype(np.int64))
    return np.unique(chances[sizes - 1])[::-1]


def certify(board: EntryScores, value: int, precision: float, risk: float) -> tuple[ZoneDecision, Zones]:
    """The laxest zone that passes, with its promise; and the zones."""
    zones = zones_of(board, value)
    passed = _passed(board, zones, 1 - precision, risk)
    if passed < 0:
        return ZoneDecision(value, None), zones
    return side_at(board, zones, passed, _alone(zones, passed, 1 - precision, risk)), zones


def side_at(board: EntryScores, zones: Zones, at: int, alone: Bools | None = None) -> ZoneDecision:
    """What filling in a zone means, as far as known entries tell."""
    known, errors, opened = zones.known[at], zones.errors[at], zones.open[at]
    rate = float(board.weight @ errors) / max(float(board.weight @ known), 1e-300)
    names = () if alone is None else tuple(board.names[j] for j in np.flatnonzero(alone))
    return ZoneDecision(
        zones.value,
        float(zones.thresholds[at]),
        int(opened.sum()),
        int(known.sum()),
        int(errors.sum()),
        rate * int(opened.sum()) if known.any() else math.nan,
        names,
    )


def _passed(board: EntryScores, zones: Zones, allowed: float, risk: float) -> int:
    """The laxest zone of all labels together that passes; -1 where not even the first does."""
    test = _Spread(board, zones, allowed) if board.spread else _Clustered(board, zones, allowed)
    needed, passed = -math.log(risk), -1
    # Where to start is decided by chances and by how much is known, not by what is: nothing is spent by looking.
    likely = [test.evidence(t, feared=True) for t in range(len(zones.thresholds))]
    for t in range(int(np.argmax(likely)) if likely else 0, len(likely)):
        if test.evidence(t) < needed:
            break
        passed = t
    return passed if passed >= 0 and zones.open[passed].any() else -1


class _Spread:
    """Entries are known each by itself, and all labels alike: the known ones of a zone are a sample of it."""

    def __init__(self, board: EntryScores, zones: Zones, allowed: float) -> None:
        self.known, self.errors, self.size, opened = (
            part.sum(axis=1) for part in (zones.known, zones.errors, zones.size, zones.open)
        )
        feared = zones.feared.sum(axis=1)
        self.feared = np.ceil(feared + np.sqrt(feared))
        self.wrong = np.floor(allowed * opened) + 1

    def evidence(self, t: int, feared: bool = False) -> float:
        """- log p of the errors in a zone, or of somewhat more than one would expect there."""
        found = self.feared[t] if feared else self.errors[t]
        p = float(wrong_p(found, self.known[t], self.size[t], self.wrong[t]))
        return -math.log(max(p, 1e-300))


class _Clustered:
    """Some items, or some labels, are known more than others. Items are then what evidence is counted by, since the
    entries of an item depend on each other; and an entry counts the more, the more rarely its label is known (Horvitz
    and Thompson), so that labels weigh as they do among all entries."""

    def __init__(self, board: EntryScores, zones: Zones, allowed: float) -> None:
        chance, right, wrong = board.of(zones.value)
        self.rows, self.columns = np.nonzero((right | wrong) & (chance >= LEAST) & board.fills)
        self.chance = chance[self.rows, self.columns]
        self.error = wrong[self.rows, self.columns].astype(np.float64)
        self.weight = board.weight[self.columns]
        self.may = np.divide(allowed * zones.open, zones.size, out=np.zeros(zones.size.shape), where=zones.size > 0)
        self.thresholds = zones.thresholds

    def evidence(self, t: int, feared: bool = False) -> float:
        """Of the errors in a zone, or of those that one would expect there."""
        use = self.chance >= self.thresholds[t]
        error = 1 - self.chance[use] if feared else self.error[use]
        may, weight = self.may[t, self.columns[use]], self.weight[use]
        items, place = np.unique(self.rows[use], return_inverse=True)
        losses, most = (np.bincount(place, weight * part, len(items)) for part in (error - may, 1 - may))
        return log_evidence(losses, most.max(initial=0.0))


def _alone(zones: Zones, at: int, allowed: float, risk: float) -> Bools:
    """Labels [L] that pass every zone up to this one by their own known entries alone: exact, label by label."""
    wrong = np.floor(allowed * zones.open) + 1
    p, best = (wrong_p(errors, zones.known, zones.size, wrong) for errors in (zones.errors, 0 * zones.errors))
    able = np.logical_or.accumulate(best <= risk, axis=0)  # before, no number of errors would do
    passes = (p <= risk) | ~able
    return np.asarray((leading(passes) > at) & able[at] & (zones.open[at] > 0))


def recall_limit(board: EntryScores, zones: Zones, recall: float, risk: float) -> float:
    """The strictest threshold at which so large a share of the yes is in the zone; -inf where there is none.

    Judged by known yes, zone after zone from the laxest on, since recall falls with the size of a zone.
    """
    rows, columns = np.nonzero(board.said == 1)
    chance = np.where(board.fills[columns], board.chance[rows, columns], 0.0)
    weight = board.weight[columns]
    largest = np.bincount(rows, weight * recall, len(board.said)).max(initial=0.0)
    limit = -math.inf
    for threshold in zones.thresholds[::-1]:
        missed = (chance < threshold).astype(np.float64)
        losses = np.bincount(rows, weight * (missed - (1 - recall)), len(board.said))
        if log_evidence(losses[np.unique(rows)], largest) < -math.log(risk):
            break
        limit = float(threshold)
    return limit
