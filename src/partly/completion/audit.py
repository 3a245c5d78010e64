"""Thresholds from questions, for entries that are not missing at random.

People answer questions about random entries of what would be filled in, no more than needed. Yes and no each have
nested zones, from strict to lax. One random order of entries, drawn in advance, serves all zones, so that an answer
counts in every zone that contains the entry. A zone passes when the answers, tested sequentially, rule out more wrong
entries than the target allows. Then the next zone is tried, as long as questions are left. Everything follows from
seed, probabilities and answers, so nothing is stored between two calls.
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

# Sizes of the zones, as shares of the expected number of yes, or of no.
ZONE_SHARES = {1: (0.05, 0.1, 0.2, 0.4, 0.7, 1.0), -1: (0.5, 0.7, 0.9, 0.97, 1.0)}
MIN_ENTRIES_PER_QUESTION = 4  # of a zone, if all answers are right; smaller zones are not tried


@dataclass(frozen=True, eq=False)
class Audit:
    """Decisions for yes and for no, and the entries to ask about next; none when the audit is over."""

    sides: tuple[ZoneDecision, ZoneDecision]
    rows: Positions
    columns: Positions


@dataclass(frozen=True)
class Rules:
    """Largest share of wrong entries, risk of each side, and the number of questions for both sides together."""

    allowed: float
    risk: float
    budget: int


def start_searches(entries: EntryScores, seed: int) -> tuple[ZoneSearch, ZoneSearch]:
    """Return the searches for yes and for no. No entry is in a zone of both."""
    yes = ZoneSearch(entries, 1, seed)
    return yes, ZoneSearch(entries, -1, seed, above=1 - yes.thresholds.min(initial=1.0))


def advance_audit(searches: tuple[ZoneSearch, ZoneSearch], answers: Ternary, rules: Rules) -> Audit:
    """Advance both sides by the answers z [N, L].

    Yes may ask half of the remaining questions and no the rest; yes may ask all of them where no is finished.
    """
    left = max(rules.budget - sum(search.count_answers(answers) for search in searches), 0)
    yes = searches[0].advance(answers, rules, left // 2)
    no = searches[1].advance(answers, rules, left - len(yes[1]))
    if not len(no[1]):
        yes = searches[0].advance(answers, rules, left)
    rows, columns = (
        np.concatenate([getattr(search, name)[next_] for search, (_, next_) in zip(searches, (yes, no), strict=True)])
        for name in ("rows", "columns")
    )
    return Audit((yes[0], no[0]), rows, columns)


class ZoneSearch:
    """Zones of one side, from strict to lax, and all candidate entries in the order of asking."""

    def __init__(self, entries: EntryScores, value: int, seed: int, above: float = -math.inf) -> None:
        self.value = value
        chance = entries.for_value(value)[0]
        rows, columns = np.nonzero(entries.candidates & entries.fillable)
        order = np.random.default_rng(seed_for(seed, "audit", value)).permutation(len(rows))
        self.rows, self.columns = rows[order], columns[order]
        self.chance: Floats = chance[self.rows, self.columns]
        thresholds = _zone_thresholds(self.chance, ZONE_SHARES[value])
        self.thresholds = thresholds[thresholds > above]

    def count_answers(self, answers: Ternary) -> int:
        """Count the answers in the laxest zone, which are those that this side has asked for."""
        zone = self.chance >= self.thresholds.min(initial=math.inf)
        return int((answers[self.rows[zone], self.columns[zone]] != 0).sum())

    def advance(self, answers: Ternary, rules: Rules, max_questions: int) -> tuple[ZoneDecision, Positions]:
        """Return the laxest zone that passes, and the positions to ask about next."""
        said = answers[self.rows, self.columns]
        decision = ZoneDecision(self.value, None, asked=self.count_answers(answers))
        for threshold in self.thresholds:
            zone = np.flatnonzero(self.chance >= threshold)
            untested = SequentialTest.of(np.empty(0, bool), len(zone), math.floor(rules.allowed * len(zone)) + 1)
            if untested.needed(rules.risk, len(zone) // MIN_ENTRIES_PER_QUESTION) is None:
                continue
            unasked = zone[said[zone] == 0]
            wrong = int(((said[zone] != 0) & (said[zone] != self.value)).sum())
            test = self._test_answers(said[zone], math.floor(rules.allowed * len(unasked)) + 1 + wrong)
            if test.log >= -math.log(rules.risk):
                counts = len(unasked), test.drawn, test.errors, test.errors / test.drawn * len(unasked)
                decision = ZoneDecision(self.value, float(threshold), *counts, asked=decision.asked)
                # To continue with a laxer zone, the decision must hold whatever else is asked.
                worst_case = math.floor(rules.allowed * max(len(zone) - rules.budget, 0)) + 1
                test = self._test_answers(said[zone], worst_case)
                if test.log >= -math.log(rules.risk):
                    continue
            return decision, self._next_questions(test, zone, unasked, rules, max_questions)
        return decision, np.empty(0, np.int64)

    def _next_questions(
        self, test: SequentialTest, zone: Positions, unasked: Positions, rules: Rules, max_questions: int
    ) -> Positions:
        """Return the entries whose answers would suffice if all were right; none where these are too many."""
        answered = len(zone) - len(unasked) - test.drawn  # answers further on will count without a question
        draws = test.needed(rules.risk, max_questions + answered)
        if draws is not None:  # asked entries are not filled in, so fewer may be wrong
            fewer = replace(test, wrong=test.wrong - math.ceil(rules.allowed * draws))
            draws = fewer.needed(rules.risk, max_questions + answered)
        questions = np.intersect1d(zone[test.drawn : test.drawn + (draws or 0)], unasked)
        return questions[: 0 if len(questions) > max_questions else None]

    def _test_answers(self, said: Ternary, wrong: int) -> SequentialTest:
        """Test the answers of a zone, in order, up to the first missing one."""
        missing = np.flatnonzero(said == 0)
        leading = said[: missing[0] if len(missing) else None]
        return SequentialTest.of(leading != self.value, len(said), wrong)


def _zone_thresholds(chance: Floats, shares: tuple[float, ...]) -> Floats:
    """Thresholds of zones with these shares of the expected number of this side, from strict to lax."""
    descending = np.sort(chance)[::-1]
    sizes = [math.floor(share * chance.sum()) for share in shares]
    return np.unique([descending[size - 1] for size in sizes if size > 0])[::-1]
