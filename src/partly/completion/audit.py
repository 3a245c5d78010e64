"""Thresholds from questions, for entries that are not missing at random.

People answer questions about random entries of what would be filled in, no more than needed. Yes and no each have
nested zones, from strict to lax. One random order of entries, drawn in advance, serves all zones, so that an answer
counts in every zone that contains the entry. A zone passes when the answers, tested sequentially, rule out more wrong
entries than allowed. Then the next zone is tried, as long as questions are left. Everything follows from seed,
probabilities and answers, so nothing is stored between two calls.

Zones of yes are allowed the share of wrong entries that the precision leaves. Zones of no are allowed a share of the
hidden yes, of which there are at least as many as are certified to be right among those filled in as yes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.completion.bounds import SequentialTest
from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores, Floats

Positions = npt.NDArray[np.int64]
Ternary = npt.NDArray[np.int8]

# Sizes of the zones, as shares of the expected number of yes, or of no.
ZONE_SHARES = {1: (0.05, 0.1, 0.2, 0.4, 0.7, 1.0), -1: (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9, 1.0)}
MIN_ENTRIES_PER_QUESTION = 4  # of a zone, if all answers are right; smaller zones are not tried


@dataclass(frozen=True, eq=False)
class Audit:
    """Decisions for yes and for no, and the entries to ask about next; none when the audit is over."""

    sides: tuple[ZoneDecision, ZoneDecision]
    rows: Positions
    columns: Positions


@dataclass(frozen=True)
class Rules:
    """Precision of yes, share of hidden yes that may become no (None: fill in no no), risks, and questions for both."""

    precision: float
    max_missed: float | None
    yes_risk: float
    no_risk: float
    budget: int

    def allowed_among_yes(self, filled: int) -> int:
        """Largest number of wrong entries among so many that are filled in as yes."""
        return math.floor((1 - self.precision) * filled)

    def allowed_among_no(self, yes: ZoneDecision) -> int:
        """Largest number of yes that may be filled in as no, given what is certified as yes."""
        hidden = math.ceil(self.precision * yes.filled) if yes.certified else 0
        return math.floor((self.max_missed or 0.0) * hidden)


def start_searches(entries: EntryScores, seed: int, first: float | None = None) -> tuple[ZoneSearch, ZoneSearch]:
    """Return the searches for yes and for no. No entry is in a zone of both. first: threshold to start yes with."""
    yes = ZoneSearch(entries, 1, seed, first=first)
    return yes, ZoneSearch(entries, -1, seed, above=1 - yes.thresholds.min(initial=1.0))


def advance_audit(searches: tuple[ZoneSearch, ZoneSearch], answers: Ternary, rules: Rules) -> Audit:
    """Advance both sides by the answers z [N, L].

    Yes may ask half of the remaining questions and no the rest; yes may ask all of them where no is finished.
    """
    left = max(rules.budget - sum(search.count_answers(answers) for search in searches), 0)

    def advance_yes(max_questions: int) -> tuple[ZoneDecision, Positions]:
        return searches[0].advance(answers, rules.allowed_among_yes, rules.yes_risk, rules.budget, max_questions)

    yes = advance_yes(left // 2)
    allowed = rules.allowed_among_no(yes[0])
    no = searches[1].advance(answers, lambda _: allowed, rules.no_risk, rules.budget, left - len(yes[1]))
    if not len(no[1]):
        yes = advance_yes(left)
    rows, columns = (
        np.concatenate([getattr(search, name)[next_] for search, (_, next_) in zip(searches, (yes, no), strict=True)])
        for name in ("rows", "columns")
    )
    return Audit((yes[0], no[0]), rows, columns)


class ZoneSearch:
    """Zones of one side, from strict to lax, and all candidate entries in the order of asking."""

    def __init__(
        self, entries: EntryScores, value: int, seed: int, above: float = -math.inf, first: float | None = None
    ) -> None:
        self.value = value
        chance = entries.for_value(value)[0]
        rows, columns = np.nonzero(entries.candidates & entries.fillable)
        order = np.random.default_rng(seed_for(seed, "audit", value)).permutation(len(rows))
        self.rows, self.columns = rows[order], columns[order]
        self.chance: Floats = chance[self.rows, self.columns]
        thresholds = _zone_thresholds(self.chance, ZONE_SHARES[value])
        if first is not None:
            thresholds = np.concatenate([[first], thresholds[thresholds < first]])
        self.thresholds = thresholds[thresholds > above]

    def count_answers(self, answers: Ternary) -> int:
        """Count the answers in the laxest zone, which are those that this side has asked for."""
        zone = self.chance >= self.thresholds.min(initial=math.inf)
        return int((answers[self.rows[zone], self.columns[zone]] != 0).sum())

    def advance(
        self, answers: Ternary, allowed: Callable[[int], int], risk: float, budget: int, max_questions: int
    ) -> tuple[ZoneDecision, Positions]:
        """Return the laxest zone that passes, and the positions to ask about next.

        allowed: number of wrong entries that are allowed among so many filled ones.
        """
        given = answers[self.rows, self.columns]
        decision = ZoneDecision(self.value, None, asked=self.count_answers(answers))
        for threshold in self.thresholds:
            zone = np.flatnonzero(self.chance >= threshold)
            untested = SequentialTest.of(np.empty(0, bool), len(zone), allowed(len(zone)) + 1)
            if untested.needed(risk, len(zone) // MIN_ENTRIES_PER_QUESTION) is None:
                continue
            unasked = zone[given[zone] == 0]
            wrong = int(((given[zone] != 0) & (given[zone] != self.value)).sum())
            test = self._test_answers(given[zone], allowed(len(unasked)) + 1 + wrong)
            if test.log >= -math.log(risk):
                counts = len(unasked), test.drawn, test.errors, test.errors / test.drawn * len(unasked)
                decision = ZoneDecision(self.value, float(threshold), *counts, asked=decision.asked)
                # To continue with a laxer zone, the decision must hold whatever else is asked.
                test = self._test_answers(given[zone], allowed(max(len(zone) - budget, 0)) + 1)
                if test.log >= -math.log(risk):
                    continue
            return decision, self._next_questions(test, zone, unasked, allowed, risk, max_questions)
        return decision, np.empty(0, np.int64)

    def _next_questions(
        self,
        test: SequentialTest,
        zone: Positions,
        unasked: Positions,
        allowed: Callable[[int], int],
        risk: float,
        max_questions: int,
    ) -> Positions:
        """Return the entries whose answers would suffice if all were right; none where these are too many."""
        answered = len(zone) - len(unasked) - test.drawn  # answers further on will count without a question
        draws = test.needed(risk, max_questions + answered)
        if draws is not None:  # asked entries are not filled in, so fewer may be wrong
            fewer = allowed(len(unasked) + 1) - allowed(max(len(unasked) - draws - 1, 0))
            fewer += allowed(len(unasked)) > allowed(0)  # rounding
            draws = replace(test, wrong=max(test.wrong - fewer, 1)).needed(risk, max_questions + answered)
        questions = np.intersect1d(zone[test.drawn : test.drawn + (draws or 0)], unasked)
        return questions[: 0 if len(questions) > max_questions else None]

    def _test_answers(self, given: Ternary, wrong: int) -> SequentialTest:
        """Test the answers of a zone, in order, up to the first missing one."""
        missing = np.flatnonzero(given == 0)
        leading = given[: missing[0] if len(missing) else None]
        return SequentialTest.of(leading != self.value, len(given), wrong)


def _zone_thresholds(chance: Floats, shares: tuple[float, ...]) -> Floats:
    """Thresholds of zones with these shares of the expected number of this side, from strict to lax."""
    descending = np.sort(chance)[::-1]
    sizes = [math.floor(share * chance.sum()) for share in shares]
    return np.unique([descending[size - 1] for size in sizes if size > 0])[::-1]
