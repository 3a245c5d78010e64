"""Thresholds from questions, for entries that are not missing at random.

People answer questions about random entries of what would be filled in. A pilot recalibrates the probabilities first,
unless known entries may do so. They choose the first zone of yes: the one with the most entries to fill in, times the
probability that a planned number of answers certifies it. From there on zones become laxer, as long as questions are
left. One random order of entries, drawn in advance, serves all zones, so that an answer counts in every zone that
contains the entry. Everything follows from seed, budget, probabilities and answers, so nothing is stored between calls.

Zones of yes are allowed the share of wrong entries that the precision leaves. Zones of no are allowed a share of the
hidden yes, of which there are at least as many as are certified to be right among those filled in as yes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.completion.bounds import SequentialTest
from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import Bools, EntryScores, Floats
from partly.completion.pilot import Pilot
from partly.completion.planned_test import count_passing_errors, pass_probability, plan_test

Positions = npt.NDArray[np.int64]
Ternary = npt.NDArray[np.int8]

SMALLEST_ZONE, GROWTH = 25, 1.15  # of the zones of yes, in entries
NO_SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 0.9, 1.0)  # sizes of the zones of no, as shares of the expected number
MIN_ENTRIES_PER_QUESTION = 4  # of a zone of no, if all answers are right; smaller zones are not tried
ASKED_SHARES = (0.3, 0.5, 0.7)  # of a zone of yes, at most
PRIOR_WEIGHT = 20.0  # of the predicted share of errors, in observations
PATH_GROWTH = 1.25  # of the entries that a zone of yes fills in, from one zone to the next


@dataclass(frozen=True, eq=False)
class Audit:
    """Decisions for yes and for no, and the entries to ask about next; none when the audit is over."""

    sides: tuple[ZoneDecision, ZoneDecision]
    rows: Positions
    columns: Positions


@dataclass(frozen=True)
class Rules:
    """Precision of yes, share of hidden yes that may become no (None: fill in no no), risk, questions for both.

    no_risk: part of the risk that is spent on no, and not on laxer zones of yes, once a zone of yes has passed; pilot:
    number of questions of the pilot; 0 where known entries calibrate the probabilities.
    """

    precision: float
    max_missed: float | None
    risk: float
    no_risk: float
    budget: int
    pilot: int = 0

    @property
    def laxer_risk(self) -> float:
        """Risk of the zones of yes after the first one."""
        return self.risk if self.max_missed is None else self.risk - self.no_risk

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
    yes = yes_search.advance(answers, left)
    no = no_search.advance(answers, rules.max_errors_among_no(yes[0]), left)
    if len(no[1]):
        yes = yes_search.advance(answers, left // 2)
        no = no_search.advance(answers, rules.max_errors_among_no(yes[0]), left - len(yes[1]))
    rows, columns = (
        np.concatenate([getattr(yes_search, name)[yes[1]], getattr(no_search, name)[no[1]]])
        for name in ("rows", "columns")
    )
    return Audit((replace(yes[0], asked=yes[0].asked + len(pilot.rows)), no[0]), rows, columns)


def start_searches(
    entries: EntryScores, seed: int, rules: Rules, pilot: Pilot, answers: Ternary
) -> tuple[YesSearch, NoSearch]:
    """Return the searches for yes and for no. No entry is in a zone of both, or in one and the pilot."""
    pool = entries.candidates & entries.fillable & ~pilot.mask(entries.chance.shape)
    chance, calibrating = entries.chance, entries.chance[(entries.observed != 0) & entries.fillable]
    if rules.pilot:
        chance, calibrating = pilot.recalibrate(chance, answers), pilot.yes_chance
    yes = YesSearch(entries, seed, pool, rules)
    yes.plan(chance[yes.rows, yes.columns], calibrating, rules.budget - len(pilot.rows))
    return yes, NoSearch(entries, seed, pool, rules, 1 - yes.laxest)


class ZoneSearch:
    """All entries of a pool in the order of asking, and nested zones of them: all that reach a threshold."""

    def __init__(self, entries: EntryScores, value: int, seed: int, pool: Bools, rules: Rules) -> None:
        self.value, self.rules = value, rules
        rows, columns = np.nonzero(pool)
        order = np.random.default_rng(seed_for(seed, "audit", value)).permutation(len(rows))
        self.rows, self.columns = rows[order], columns[order]
        self.chance: Floats = entries.for_value(value)[0][self.rows, self.columns]
        self.descending: Floats = np.sort(self.chance)[::-1]
        self.laxest = math.inf  # threshold

    def count_answers(self, answers: Ternary) -> int:
        """Count the answers in the laxest zone, which are those that this side has asked for."""
        zone = self.chance >= self.laxest
        return int((answers[self.rows[zone], self.columns[zone]] != 0).sum())

    def decide(self, threshold: float, answered: Ternary, asked: int) -> ZoneDecision:
        """Return the decision to fill in a zone with these answers."""
        drawn, errors = int((answered != 0).sum()), int((answered == -self.value).sum())
        unasked = len(answered) - drawn
        return ZoneDecision(
            self.value, threshold, unasked, drawn, errors, errors / max(drawn, 1) * unasked, asked=asked
        )


@dataclass(frozen=True)
class YesZone:
    """A zone of yes of so many entries, and the plan of its test."""

    threshold: float
    size: int
    draws: int
    risk: float


class YesSearch(ZoneSearch):
    """Zones of yes. The first one is tested at the whole risk, the others at the share that no leaves."""

    def __init__(self, entries: EntryScores, seed: int, pool: Bools, rules: Rules) -> None:
        super().__init__(entries, 1, seed, pool, rules)
        self.zones: list[YesZone] = []
        self.expected = 0.0  # number of entries that the first zone fills in, times the probability that it passes

    def plan(self, predicted: Floats, calibrating: Floats, questions: int) -> None:
        """Choose zones by predicted probabilities. calibrating: probabilities of entries that calibrated these."""
        wrong = np.cumsum(1 - predicted[np.argsort(-self.chance, kind="stable")])
        largest = min(math.ceil(predicted.sum()), len(wrong))
        steps = math.ceil(math.log(max(largest / SMALLEST_ZONE, 1), GROWTH)) + 1
        sizes = np.unique((SMALLEST_ZONE * GROWTH ** np.arange(steps)).astype(int))
        plans: list[tuple[float, int, int]] = []  # expected number of filled entries, zone, draws
        for zone in np.unique([int((self.chance >= limit).sum()) for limit in self._limits(sizes[sizes <= largest])]):
            weight = PRIOR_WEIGHT + float((calibrating >= self._limits([zone])[0]).sum())
            options = {int(min(questions, share * zone)) for share in ASKED_SHARES}
            share = float(wrong[zone - 1]) / zone
            plans.append(max((self._expect_filled(int(zone), n, share, weight), int(zone), n) for n in options))
        first = max(plans, default=(0.0, 0, 0))
        if first[0] < 1:
            return
        self.expected, filled = first[0], 0.0
        for _, zone, draws in plans[plans.index(first) :]:
            if zone - draws >= PATH_GROWTH * filled:
                risk = self.rules.laxer_risk if self.zones else self.rules.risk
                self.zones.append(YesZone(float(self._limits([zone])[0]), zone, draws, risk))
                filled = zone - draws
        self.laxest = self.zones[-1].threshold

    def _limits(self, sizes: Any) -> Floats:
        """Return the thresholds of the zones with so many entries, or more where probabilities are tied."""
        return self.descending[np.asarray(sizes, np.int64) - 1]

    def _expect_filled(self, zone: int, draws: int, share: float, weight: float) -> float:
        """Return how many entries the first zone fills in, times the probability that it passes."""
        allowed = self.rules.max_errors_among_yes(zone - draws)
        limit = count_passing_errors(zone, allowed, draws, self.rules.risk) if draws else -1
        return pass_probability(limit, draws, share, weight) * (zone - draws)

    def advance(self, answers: Ternary, max_questions: int) -> tuple[ZoneDecision, Positions]:
        """Return the laxest zone that passes, and the positions to ask about next."""
        side_answers = answers[self.rows, self.columns]
        decision, most_wrong = ZoneDecision(1, None, asked=self.count_answers(answers)), 0
        for plan in self.zones:
            test = plan_test(plan.size, self.rules.max_errors_among_yes(plan.size - plan.draws), plan.draws, plan.risk)
            zone = np.flatnonzero(self.chance >= plan.threshold)
            answered = side_answers[zone]
            missing = np.flatnonzero(answered == 0)
            drawn = answered[: missing[0] if len(missing) else None] != 1
            bound, errors = test.bound_wrong(drawn), int((answered == -1).sum())
            if bound is not None and bound - errors <= self.rules.max_errors_among_yes(len(missing)):
                decision, most_wrong = self.decide(plan.threshold, answered, decision.asked), bound - errors
                continue
            batches = (missing[missing < look] for look in test.open_looks(drawn))
            questions = next((zone[batch] for batch in batches if 0 < len(batch) <= max_questions), missing[:0])
            if decision.threshold is not None:  # the decision must hold whatever the answers are
                filled = decision.filled - int((self.chance[questions] >= decision.threshold).sum())
                questions = questions if most_wrong <= self.rules.max_errors_among_yes(filled) else missing[:0]
            return decision, questions
        return decision, np.empty(0, np.int64)


class NoSearch(ZoneSearch):
    """Zones of no, from strict to lax, tested by betting, since the number of allowed errors grows with yes."""

    def __init__(self, entries: EntryScores, seed: int, pool: Bools, rules: Rules, above: float) -> None:
        super().__init__(entries, -1, seed, pool, rules)
        self.thresholds: Floats = np.empty(0)
        if rules.max_missed is not None and math.isfinite(above):
            sizes = [math.floor(share * self.chance.sum()) for share in NO_SHARES]
            thresholds = np.unique([self.descending[size - 1] for size in sizes if size > 0])[::-1]
            self.thresholds = thresholds[thresholds > above]
            self.laxest = float(self.thresholds.min(initial=math.inf))

    def advance(self, answers: Ternary, allowed: int, max_questions: int) -> tuple[ZoneDecision, Positions]:
        """Return the laxest zone that passes with so many errors, and the positions to ask about next."""
        side_answers = answers[self.rows, self.columns]
        decision = ZoneDecision(-1, None, asked=self.count_answers(answers))
        for threshold in self.thresholds:
            zone = np.flatnonzero(self.chance >= threshold)
            untested = SequentialTest.of(np.empty(0, bool), len(zone), allowed + 1)
            if untested.count_needed_draws(self.rules.no_risk, len(zone) // MIN_ENTRIES_PER_QUESTION) is None:
                continue
            answered = side_answers[zone]
            missing = np.flatnonzero(answered == 0)
            drawn = answered[: missing[0] if len(missing) else None] == 1
            test = SequentialTest.of(drawn, len(zone), allowed + 1 + int((answered == 1).sum()))
            if test.log < -math.log(self.rules.no_risk):
                ahead = int((answered != 0).sum()) - test.drawn  # answers that will count without a question
                fewest = test.count_needed_draws(self.rules.no_risk, min(len(missing), max_questions) + ahead)
                count = 0 if fewest is None else max(fewest - ahead, 1)
                return decision, zone[missing[:count]]
            decision = self.decide(float(threshold), answered, decision.asked)
        return decision, np.empty(0, np.int64)
