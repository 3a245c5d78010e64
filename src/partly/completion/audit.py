"""Thresholds from questions, for entries that are not missing at random.

People answer questions about random entries of what would be filled in, no more than needed. A pilot recalibrates the
probabilities first, unless known entries may do so. They choose the first zone of yes: the one with the most entries to
fill in, times the probability that it passes. From there on zones become laxer. One random order of entries, drawn in
advance, serves all zones, so that an answer counts in every zone that contains the entry. A zone passes when the
answers, tested sequentially, rule out more wrong entries than allowed. Then the next zone is tried, as long as
questions are left. Everything follows from seed, probabilities and answers, so nothing is stored between two calls.

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
from partly.completion.bounds import SequentialTest, Stakes, pass_probability
from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import Bools, EntryScores, Floats
from partly.completion.pilot import Pilot

Positions = npt.NDArray[np.int64]
Ternary = npt.NDArray[np.int8]

SMALLEST_ZONE, GROWTH = 25, 1.15  # of the zones of yes, in entries
NO_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9, 1.0)  # sizes of the zones of no, as shares of the expected number
MIN_ENTRIES_PER_QUESTION = 4  # of a zone of no, if all answers are right; smaller zones are not tried
MAX_ASKED_SHARE = 0.7  # of a zone of yes, since nothing would be left to fill in
PESSIMISM = 1.2  # factor on the predicted errors of a zone of yes, and half an error more


@dataclass(frozen=True, eq=False)
class Audit:
    """Decisions for yes and for no, and the entries to ask about next; none when the audit is over."""

    sides: tuple[ZoneDecision, ZoneDecision]
    rows: Positions
    columns: Positions


@dataclass(frozen=True)
class Rules:
    """Precision of yes, share of hidden yes that may become no (None: fill in no no), risks, questions for both.

    pilot: number of questions of the pilot; 0 where known entries calibrate the probabilities.
    """

    precision: float
    max_missed: float | None
    yes_risk: float
    no_risk: float
    budget: int
    pilot: int = 0

    def max_errors_among_yes(self, filled: int) -> int:
        """Return the largest allowed number of errors among `filled` entries that become yes."""
        return math.floor((1 - self.precision) * filled)

    def max_errors_among_no(self, yes: ZoneDecision) -> int:
        """Return the largest allowed number of hidden yes that become no, given the certified yes."""
        hidden = math.ceil(self.precision * yes.filled) if yes.certified else 0
        return math.floor((self.max_missed or 0.0) * hidden)


def advance_audit(entries: EntryScores, answers: Ternary, rules: Rules, seed: int) -> Audit:
    """Return what the answers z [N, L] certify, and the next questions.

    Yes may ask half of the remaining questions and no the rest; yes may ask all of them where no is finished.
    """
    pilot = Pilot.draw(entries, seed, rules.pilot)
    unanswered = pilot.find_unanswered(answers)
    if len(unanswered):
        undecided = ZoneDecision(1, None, asked=len(pilot.rows) - len(unanswered)), ZoneDecision(-1, None)
        return Audit(undecided, pilot.rows[unanswered], pilot.columns[unanswered])
    yes_search, no_search = start_searches(entries, seed, rules, pilot, answers)
    asked_for = (yes_search.count_answers(answers), no_search.count_answers(answers))
    left = max(rules.budget - len(pilot.rows) - sum(asked_for), 0)

    def advance_yes(max_questions: int) -> tuple[ZoneDecision, Positions]:
        return yes_search.advance(answers, rules.max_errors_among_yes, rules.yes_risk, left, max_questions)

    yes = advance_yes(left // 2)
    allowed = rules.max_errors_among_no(yes[0])
    no = no_search.advance(answers, lambda _: allowed, rules.no_risk, left, left - len(yes[1]))
    if not len(no[1]):
        yes = advance_yes(left)
    rows, columns = (
        np.concatenate([getattr(yes_search, name)[yes[1]], getattr(no_search, name)[no[1]]])
        for name in ("rows", "columns")
    )
    return Audit((replace(yes[0], asked=yes[0].asked + len(pilot.rows)), no[0]), rows, columns)


def start_searches(
    entries: EntryScores, seed: int, rules: Rules, pilot: Pilot, answers: Ternary
) -> tuple[ZoneSearch, ZoneSearch]:
    """Return the searches for yes and for no. No entry is in a zone of both, or in one and the pilot."""
    pool = entries.candidates & entries.fillable & ~pilot.mask(entries.chance.shape)
    chance = pilot.recalibrate(entries.chance, answers) if rules.pilot else entries.chance
    yes = ZoneSearch(entries, 1, seed, pool)
    yes.plan(chance[yes.rows, yes.columns], rules, rules.budget - len(pilot.rows))
    no = ZoneSearch(entries, -1, seed, pool)
    if rules.max_missed is None:
        return yes, no
    thresholds = _zone_thresholds(no.chance, [math.floor(share * no.chance.sum()) for share in NO_SHARES])
    no.thresholds = thresholds[thresholds > 1 - yes.thresholds.min(initial=1.0)]
    return yes, no


class ZoneSearch:
    """Zones of one side, from strict to lax, and all entries of a pool in the order of asking."""

    def __init__(self, entries: EntryScores, value: int, seed: int, pool: Bools) -> None:
        self.value = value
        rows, columns = np.nonzero(pool)
        order = np.random.default_rng(seed_for(seed, "audit", value)).permutation(len(rows))
        self.rows, self.columns = rows[order], columns[order]
        self.chance: Floats = entries.for_value(value)[0][self.rows, self.columns]
        self.thresholds: Floats = np.empty(0)
        self.stakes: dict[float, Stakes] = {}

    def plan(self, predicted: Floats, rules: Rules, questions: int) -> None:
        """Choose the zones and their stakes by the predicted probabilities of the entries."""
        allowed = 1 - rules.precision
        errors = np.cumsum(1 - predicted[np.argsort(-self.chance, kind="stable")])
        largest = min(math.ceil(predicted.sum()), len(errors))
        steps = math.ceil(math.log(max(largest / SMALLEST_ZONE, 1), GROWTH)) + 1
        sizes = np.unique((SMALLEST_ZONE * GROWTH ** np.arange(steps)).astype(int))
        thresholds: list[float] = []
        gains: list[float] = []
        for size in sizes[sizes <= largest].tolist():
            draws = int(min(questions, MAX_ASKED_SHARE * size))
            share = PESSIMISM * errors[size - 1] / size + 0.5 / max(draws, 1)
            stakes = Stakes(float(share), allowed)
            gains.append(pass_probability(stakes, draws, rules.yes_risk) * (size - draws / 2))
            thresholds.append(float(np.partition(self.chance, -size)[-size]))
            self.stakes[thresholds[-1]] = stakes
        first = int(np.argmax(gains)) if gains and max(gains) >= 1 else len(gains)
        self.thresholds = np.unique(thresholds[first:])[::-1]

    def count_answers(self, answers: Ternary) -> int:
        """Count the answers in the laxest zone, which are those that this side has asked for."""
        zone = self.chance >= self.thresholds.min(initial=math.inf)
        return int((answers[self.rows[zone], self.columns[zone]] != 0).sum())

    def advance(
        self, answers: Ternary, allowed: Callable[[int], int], risk: float, left: int, max_questions: int
    ) -> tuple[ZoneDecision, Positions]:
        """Return the laxest zone that passes, and the positions to ask about next.

        allowed: number of wrong entries that are allowed among so many filled ones; left: number of questions of both
        sides that may still be asked.
        """
        side_answers = answers[self.rows, self.columns]
        decision = ZoneDecision(self.value, None, asked=self.count_answers(answers))
        for threshold in self.thresholds:
            zone = np.flatnonzero(self.chance >= threshold)
            if self._is_too_small(zone, allowed(len(zone)) + 1, risk):
                continue
            answered = side_answers[zone]
            unasked = int((answered == 0).sum())
            # To continue with a laxer zone, the decision must hold whatever else is asked.
            for filled_at_least in (None, max(unasked - left, 0)):
                claim = _Claim(len(zone), self.value, allowed, filled_at_least, self.stakes.get(float(threshold)))
                test = claim.test(answered)
                if test.log < -math.log(risk):
                    return decision, zone[claim.next_questions(answered, risk, max_questions)]
                counts = unasked, test.drawn, test.errors, test.errors / max(test.drawn, 1) * unasked
                decision = ZoneDecision(self.value, float(threshold), *counts, asked=decision.asked)
        return decision, np.empty(0, np.int64)

    def _is_too_small(self, zone: Positions, wrong: int, risk: float) -> bool:
        """Return whether a zone of no would take too many questions even if all answers were right."""
        if self.value == 1:
            return False
        untested = SequentialTest.of(np.empty(0, bool), len(zone), wrong)
        return untested.count_needed_draws(risk, len(zone) // MIN_ENTRIES_PER_QUESTION) is None


@dataclass(frozen=True, eq=False)
class _Claim:
    """The claim that more entries of a zone are wrong than allowed among the filled ones, to be tested by answers.

    filled_at_least: number of entries that are filled in whatever the further questions; None: those without an answer.
    """

    zone: int
    value: int
    allowed: Callable[[int], int]
    filled_at_least: int | None
    stakes: Stakes | None

    def test(self, answered: Ternary) -> SequentialTest:
        """Test the answers of the zone, in order, up to the first missing one."""
        missing = np.flatnonzero(answered == 0)
        leading = answered[: missing[0] if len(missing) else None]
        wrong = int(((answered != 0) & (answered != self.value)).sum())
        filled = len(missing) if self.filled_at_least is None else self.filled_at_least
        return SequentialTest.of(leading != self.value, self.zone, self.allowed(filled) + 1 + wrong, self.stakes)

    def next_questions(self, answered: Ternary, risk: float, max_questions: int) -> Positions:
        """Return the places whose answers would suffice if all were right; none where these are too many."""
        missing = np.flatnonzero(answered == 0)[:max_questions]
        if_right = answered.copy()
        if_right[missing] = self.value
        if self.test(if_right).log < -math.log(risk):
            return missing[:0]
        test = self.test(answered)
        ahead = int((answered != 0).sum()) - test.drawn  # answers that will count without a question
        fewest = (
            test.count_needed_draws(risk, len(missing) + ahead) or 0
        )  # asking leaves fewer to fill in, so more may be needed
        for count in range(max(fewest - ahead, 1), len(missing)):
            if_right[missing] = self.value
            if_right[missing[count:]] = 0
            if self.test(if_right).log >= -math.log(risk):
                return missing[:count]
        return missing


def _zone_thresholds(chance: Floats, sizes: list[int]) -> Floats:
    """Thresholds of zones of these sizes, from strict to lax."""
    descending = np.sort(chance)[::-1]
    return np.unique([descending[size - 1] for size in sizes if size > 0])[::-1]
