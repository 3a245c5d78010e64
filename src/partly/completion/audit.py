"""Thresholds from questions, where known entries do not speak for unknown ones: entries drawn by chance from what would
be filled in are asked about, no more than needed.

Of each side there is a ladder of zones, strict to lax. In each, entries are asked in an order drawn beforehand, one for
all zones, so that an answer counts in every zone that has the entry. A zone passes when the answers, looked at one by
one, rule out that more of it are wrong than the target allows; then the next is tried, as long as questions are left.
All of it follows from seed, chances and answers, so that nothing need be kept between two calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.completion.bounds import SequentialTest
from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores, Floats

Positions = npt.NDArray[np.int64]
Ternary = npt.NDArray[np.int8]

# Zones, as shares of the entries that are expected to be yes, or no.
RUNGS = {1: (0.05, 0.1, 0.2, 0.4, 0.7, 1.0), -1: (0.5, 0.7, 0.9, 0.97, 1.0)}
WORTH = 4  # times as many entries as questions without a wrong answer, that a zone must have to be tried


@dataclass(frozen=True, eq=False)
class Audit:
    """What answers have certified, yes then no; and the entries to ask about next, none where it is over."""

    sides: tuple[ZoneDecision, ZoneDecision]
    rows: Positions
    columns: Positions


@dataclass(frozen=True)
class Rules:
    """What is to be certified: at most a share `allowed` of what is filled in is wrong, at this risk of each side; and
    how many questions may be asked of both sides together."""

    allowed: float
    risk: float
    budget: int


def ladders_of(board: EntryScores, seed: int) -> tuple[ZoneSearch, ZoneSearch]:
    """Of yes and of no. No entry is in a zone of both."""
    yes = ZoneSearch(board, 1, seed)
    return yes, ZoneSearch(board, -1, seed, above=1 - yes.thresholds.min(initial=1.0))


def look(ladders: tuple[ZoneSearch, ZoneSearch], answers: Ternary, rules: Rules) -> Audit:
    """How far answers z [N, L] have brought both sides. Yes may ask half of what is left, no the rest, and yes all of
    it where no is over."""
    left = max(rules.budget - sum(ladder.asked(answers) for ladder in ladders), 0)
    yes = ladders[0].advance(answers, rules, left // 2)
    no = ladders[1].advance(answers, rules, left - len(yes[1]))
    if not len(no[1]):
        yes = ladders[0].advance(answers, rules, left)
    rows, columns = (
        np.concatenate([getattr(ladder, name)[wanted] for ladder, (_, wanted) in zip(ladders, (yes, no), strict=True)])
        for name in ("rows", "columns")
    )
    return Audit((yes[0], no[0]), rows, columns)


class ZoneSearch:
    """One side: its zones, strict to lax, and all entries that could be filled in, in the order of asking."""

    def __init__(self, board: EntryScores, value: int, seed: int, above: float = -math.inf) -> None:
        self.value = value
        chance = board.of(value)[0]
        rows, columns = np.nonzero(board.open & board.fills)
        draw = np.random.default_rng(seed_for(seed, "audit", value)).permutation(len(rows))
        self.rows, self.columns = rows[draw], columns[draw]
        self.chance: Floats = chance[self.rows, self.columns]
        rungs = _rungs(self.chance, RUNGS[value])
        self.thresholds = rungs[rungs > above]

    def asked(self, answers: Ternary) -> int:
        """Answers in the laxest zone: those that this side has asked for."""
        zone = self.chance >= self.thresholds.min(initial=math.inf)
        return int((answers[self.rows[zone], self.columns[zone]] != 0).sum())

    def advance(self, answers: Ternary, rules: Rules, most: int) -> tuple[ZoneDecision, Positions]:
        """The laxest zone that passes, and what to ask next to try another one: positions here, at most `most`."""
        said = answers[self.rows, self.columns]
        passed = ZoneDecision(self.value, None, asked=self.asked(answers))
        for threshold in self.thresholds:
            zone = np.flatnonzero(self.chance >= threshold)
            whole = SequentialTest.of(np.empty(0, bool), len(zone), math.floor(rules.allowed * len(zone)) + 1)
            if whole.needed(rules.risk, len(zone) // WORTH) is None:
                continue
            unasked = zone[said[zone] == 0]
            wrong = int(((said[zone] != 0) & (said[zone] != self.value)).sum())
            race = self._raced(said[zone], math.floor(rules.allowed * len(unasked)) + 1 + wrong)
            if race.log >= -math.log(rules.risk):
                counts = len(unasked), race.drawn, race.errors, race.errors / race.drawn * len(unasked)
                passed = ZoneDecision(self.value, float(threshold), *counts, asked=passed.asked)
                least = math.floor(rules.allowed * max(len(zone) - rules.budget, 0)) + 1
                race = self._raced(said[zone], least)  # to go on, it must hold whatever else is asked
                if race.log >= -math.log(rules.risk):
                    continue
            return passed, self._next(race, zone, unasked, rules, most)
        return passed, np.empty(0, np.int64)

    def _next(self, race: SequentialTest, zone: Positions, unasked: Positions, rules: Rules, most: int) -> Positions:
        """The entries whose answers would suffice if all were right; none where these are too many."""
        answered = len(zone) - len(unasked) - race.drawn  # further on: they will count, and cost nothing
        draws = race.needed(rules.risk, most + answered)
        if draws is not None:  # which are not to be filled in then, so that fewer may be wrong
            fewer = replace(race, wrong=race.wrong - math.ceil(rules.allowed * draws))
            draws = fewer.needed(rules.risk, most + answered)
        wanted = np.intersect1d(zone[race.drawn : race.drawn + (draws or 0)], unasked)
        return wanted[: 0 if len(wanted) > most else None]

    def _raced(self, said: Ternary, wrong: int) -> SequentialTest:
        """The answers of a zone, in order, up to the first that is missing."""
        missing = np.flatnonzero(said == 0)
        there = said[: missing[0] if len(missing) else None]
        return SequentialTest.of(there != self.value, len(said), wrong)


def _rungs(chance: Floats, shares: tuple[float, ...]) -> Floats:
    """Thresholds that take these shares of the entries that are expected to be of this side; strict to lax."""
    falling = np.sort(chance)[::-1]
    sizes = [math.floor(share * chance.sum()) for share in shares]
    return np.unique([falling[size - 1] for size in sizes if size > 0])[::-1]
