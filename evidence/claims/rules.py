"""Decide claims: holds, does not hold, undecided or not comparable, and why. These are all the rules.

*Not comparable*: a comparison on unequal footing (`footing.py`), or on fixed features where the paper trains whole
networks, or whose outcome follows from the set-up (`forced`). Its difference is shown, and decides nothing.

Otherwise one margin serves both directions: 0.5 points, or half of the paper's effect where that is smaller. A
comparison *holds* where the difference, paired over seeds, is shown to be above the margin, and *does not hold* where
every setting, the paper's own among them, is shown to be below it, against a checked baseline. Intervals are widened
by the factor that `resampling.py` measured, because seeds alone redraw neither test items nor training cuts. Seeds that
were seen before a cell was moved or extended are left out. All else is *undecided*.

Where the paper claims a conjunction, a claim holds if all its comparisons do (an intersection-union test, which needs
no correction) and fails with one of them (Holm's correction). Other claims need all comparisons that can be decided to
agree. Of all claims that could be decided, the false discovery rate is held at 5 % (Benjamini and Hochberg).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from evidence.claims import footing
from evidence.claims.cells import Cells, has_own_rates
from evidence.claims.footing import Footing
from evidence.claims.specs import Claim, Comparison, Steps
from partly.comparison.groups import MAX_BASELINE_DEFICIT
from partly.comparison.plan import NAIVE
from partly.comparison.statistics import CONFIDENCE, Mean, Scores, holm, mean, paired_t

HOLDS, FAILS, OPEN, UNFIT = "holds", "does not hold", "undecided", "not comparable"
SEEDS, MANY_SEEDS, NEAR = 5, 8, 0.01  # at least so many; so many where two rows are this near each other
MARGIN, HALF = 0.005, 0.5  # the equivalence margin, or this share of the paper's effect where that is smaller

Differences = npt.NDArray[np.float64]  # [seeds]


@dataclass(frozen=True)
class Setting:
    """One setting of the method in one comparison."""

    row: str  # with the optimizer, where it is not the usual one
    found: Mean | None  # the difference (of a trend: its change from the first step to the last); None: not run
    fits: float = 1.0  # p of the claim's contrary
    fails: float = 1.0  # p of the claim
    score: float = -1.0  # on the validation part
    baselines: tuple[float | None, float | None] = (None, None)  # of both sides, above tuned scikit-learn in mAP
    footings: tuple[Footing | None, Footing | None] = (None, None)  # of both sides
    seen: bool = False  # all its seeds were seen before the cell was moved or extended

    @property
    def baseline(self) -> float | None:
        """The weaker one of both sides; None: not known."""
        return min((one for one in self.baselines if one is not None), default=None)

    @property
    def weak(self) -> bool:
        """Whether the baseline is known not to be at its best."""
        return self.baseline is not None and self.baseline < -MAX_BASELINE_DEFICIT


@dataclass(frozen=True)
class Decision:
    """One comparison, decided."""

    comparison: Comparison
    settings: tuple[Setting, ...]  # the paper's own first
    theirs: float | None  # what the paper reports, as a share
    verdict: str = OPEN
    why: str = ""
    hindered: str = ""  # why it cannot be decided, whatever the difference
    unfit: tuple[str, ...] = ()  # why it is not comparable
    outcome: str = OPEN  # what the numbers alone say

    @property
    def best(self) -> Setting:
        """What validation chose."""
        return max(self.settings, key=lambda one: (one.found is not None, one.score))

    @property
    def fails(self) -> float:
        """p of the claim, of the setting that does best by it."""
        return max(one.fails for one in self.settings)

    @property
    def fits(self) -> bool:
        """Whether the claim's contrary is excluded, by itself."""
        return self.best.fits <= 1 - CONFIDENCE

    @property
    def unchecked(self) -> str:
        """Why it could not be said not to hold, if the difference were against it."""
        absent = [setting.row for setting in self.settings if setting.found is None]
        if absent:
            return f"not run: {absent[0]}"
        unknown = self.best.baseline is None
        return "baseline not checked: scikit-learn was not run, and the interval is against the claim" * unknown


@dataclass(frozen=True)
class Decided:
    """One claim, decided."""

    claim: Claim
    verdict: str
    why: str
    decisions: tuple[Decision, ...] = ()
    p: float | None = None  # of the claim by itself, in the direction that is seen; None: it could not be decided
    q: float | None = None  # the same, corrected for all claims that could

    def count(self, verdict: str) -> int:
        return sum(one.verdict == verdict for one in self.decisions)


def decide(claims: Iterable[Claim], cells: Cells) -> list[Decided]:
    """Every claim, in the order given."""
    found = [_by_itself(claim, [_measure(claim, one, cells) for one in claim.comparisons()]) for claim in claims]
    tested = [one for one in found if one.p is not None]
    q = false_discovery_control([one.p for one in tested]) if tested else ()  # by Benjamini and Hochberg
    corrected = {id(one): _corrected(one, float(of)) for one, of in zip(tested, q, strict=True)}
    return [corrected.get(id(one), one) for one in found]


def _by_itself(claim: Claim, measured: Sequence[Decision]) -> Decided:
    """One claim, corrected for its own comparisons alone."""
    if not measured:
        return Decided(claim, OPEN, claim.open)
    tests = [one for one in measured if not (one.hindered or one.unchecked or one.unfit)]
    fails = dict(zip(map(id, tests), holm([one.fails for one in tests]), strict=True))
    decisions = tuple(_decide(claim, one, fails.get(id(one), 1.0) <= 1 - CONFIDENCE) for one in measured)
    verdict = _verdict(claim, [one.verdict for one in decisions])
    why = dict.fromkeys(
        one.why if verdict == FAILS else one.why.partition(":")[0] if verdict == OPEN else reason
        for one in decisions
        if one.verdict == verdict != HOLDS
        for reason in one.unfit[:1] or ("",)
    )
    if verdict == OPEN and not why:
        partly_unfit = claim.conjunction and any(one.verdict == UNFIT for one in decisions)
        why = {"not all that it claims together is comparable" if partly_unfit else "its comparisons disagree": None}
    fit = [one for one in measured if not one.unfit]
    p = [fails[id(one)] for one in tests if not one.fits]
    if fit and not any(one.hindered for one in fit):
        p.append(max(one.best.fits for one in fit))
    return Decided(claim, verdict, "; ".join(why), decisions, min(p, default=None))


def _verdict(claim: Claim, each: Sequence[str]) -> str:
    """A conjunction fails with one comparison; other claims need all that can be decided to agree."""
    if set(each) == {UNFIT}:
        return UNFIT
    if claim.conjunction:
        return FAILS if FAILS in each else HOLDS if set(each) == {HOLDS} else OPEN
    decided = set(each) & {HOLDS, FAILS}
    return decided.pop() if len(decided) == 1 else OPEN


def _corrected(one: Decided, q: float) -> Decided:
    """One claim among all."""
    if one.verdict in (OPEN, UNFIT) or q <= 1 - CONFIDENCE:
        return replace(one, q=q)
    return replace(one, verdict=OPEN, why="clear only by itself, not after the correction for all claims", q=q)


def _measure(claim: Claim, comparison: Comparison, cells: Cells) -> Decision:
    """The difference at each setting. A tuned row counts only where the other side was tuned too."""
    theirs = _theirs(claim, comparison)
    settings = [_setting(claim, a, b, limit(claim, theirs), cells) for a, b in comparison.sides]
    ran = [one for one in settings if one.found or ", tuned " not in one.row]
    one = Decision(comparison, tuple(ran or settings), theirs)
    return replace(one, hindered=_hindered(one, cells), unfit=_unfit(claim, one))


def _unfit(claim: Claim, one: Decision) -> tuple[str, ...]:
    """Why a comparison cannot speak for or against the paper, by the setting that validation chose."""
    a, b = one.best.footings
    if a is None:
        return ()  # not run
    same_runs = "metric" in claim.against and "head" not in claim.against  # an epoch against another of the same runs
    reasons = [claim.forced, footing.find_regime_gap(claim.paper, a)]
    if same_runs:
        solved = a.epochs is None and a.start == footing.SOLVED
        reasons.append("the model is solved, so no epoch can fall" if solved else "")
    else:
        reasons += footing.compare(a, b, claim.against)
        rows = [[cell.row for side in one.comparison.sides for cell in side[place][:1]] for place in (0, 1)]
        reasons += [footing.find_missing_setting(side) for side in rows if side]
    return tuple(filter(None, reasons))


def limit(claim: Claim, theirs: float | None) -> float:
    """Return the margin: 0.5 points, or half of the paper's effect where that is smaller.

    For a claim that two rows are near each other, it is the stated distance.
    """
    if claim.kind == "near":
        return claim.within / 100
    return MARGIN if theirs is None else min(MARGIN, HALF * abs(theirs))


@cache
def widening() -> float:
    """Return the largest factor by which test items and training cuts widen an interval over seeds."""
    text = resources.files("evidence").joinpath("results/resampling.json").read_text("utf-8")
    return float(max(one["ratio"] for one in json.loads(text) if one["ratio"] is not None))


def _widen(found: Differences) -> Differences:
    """Spread differences around their mean, so that intervals and tests allow for other data."""
    widened: Differences = found.mean() + widening() * (found - found.mean())
    return widened


def _hindered(one: Decision, cells: Cells) -> str:
    """Why a comparison cannot be decided whatever came out; "" where it can."""
    best, sides = one.best, one.comparison.sides[0]
    if best.found is None:
        missing = [f"{cell.row} ({cell.experiment})" for side in sides for cell in side if not cells.scores(cell)]
        return f"not run: {missing[0]}" if missing else "not run: no seed is common to both sides"
    if best.seen:
        return "no fresh seeds: the cells were moved or extended after a look"
    needed = MANY_SEEDS if abs(best.found.value) < NEAR else SEEDS
    if best.found.count < needed:
        near = " where two rows are within a point" if needed == MANY_SEEDS else ""
        return f"too few seeds: {best.found.count}, and {needed} are needed{near}"
    gains = [s for s in one.settings if s.weak and s.fits <= 1 - CONFIDENCE]
    if best.weak or (gains and not one.fits):
        weak = best if best.weak else gains[0]
        below = -100 * (weak.baseline or 0.0)
        place = int(weak.baselines[0] != weak.baseline)
        row = f"that of {weak.row}" if place == 0 else sides[1][0].row
        return f"baseline not at its best: {row}, {below:.1f} points of mAP below scikit-learn"
    return ""


def _setting(claim: Claim, a: Steps, b: Steps, limit: float, cells: Cells) -> Setting:
    row = a[0].row if a[0].optimizer == "adamw" else f"{a[0].row} ({a[0].optimizer})"
    scores = [[cells.scores(one) for one in side] for side in (a, b)]
    found = _differences(claim.kind, *([_fresh(one, claim.looked) for one in side] for side in scores))
    seen = not len(found)
    if seen:
        found = _differences(claim.kind, *scores)
    sides = (_footing(a, cells), _footing(b, cells))
    if not len(found):
        return Setting(row, None, footings=sides)
    found = _widen(found)
    score = float(np.mean([cells.validation(one) for one in a]))
    below = claim.kind == "below"  # the side that is claimed to be lower counts by itself
    baselines = (_baseline(a, cells, below), _baseline(b, cells, not below and "metric" not in claim.against))
    return Setting(row, mean(found), *_tests(claim.kind, found, limit), score, baselines, sides, seen)


def _fresh(scores: Scores, looked: int) -> Scores:
    """Leave out the seeds that were seen before the cell was moved or extended."""
    return {seed: score for seed, score in scores.items() if seed >= looked}


def _footing(steps: Steps, cells: Cells) -> Footing | None:
    return footing.read([run for one in steps for run in cells.runs(one)])


def _differences(kind: str, a: Sequence[Scores], b: Sequence[Scores]) -> Differences:
    """Of every seed that all cells have, the difference, in the claimed direction; of a trend the slope of the
    differences times the number of steps: the change from the first to the last on a straight line through them."""
    seeds = sorted(set.intersection(*(set(scores) for scores in (*a, *b))))
    first = np.array([[scores[seed] for seed in seeds] for scores in a])
    gained = first - np.array([[scores[seed] for seed in seeds] for scores in b]) if b else first
    return _slope(gained) if kind == "trend" else -gained[0] if kind == "below" else gained[0]


def _slope(gained: npt.NDArray[np.float64]) -> Differences:
    """[seeds] of [steps, seeds]."""
    place = np.arange(len(gained)) - (len(gained) - 1) / 2
    slope: Differences = (len(gained) - 1) * (place @ gained) / (place @ place)
    return slope


def _tests(kind: str, found: Differences, limit: float) -> tuple[float, float]:
    """p of the claim's contrary, and p of the claim."""
    if kind == "near":
        side = np.sign(found.mean())
        return max(paired_t(limit - found), paired_t(limit + found)), paired_t(side * found - limit)
    return paired_t(found - limit), paired_t(limit - found)


def _theirs(claim: Claim, comparison: Comparison) -> float | None:
    """What the paper reports for the same, in the claimed direction."""
    if not comparison.theirs:
        return None
    sides = [[one.share if one else 0.0 for one in pair] for pair in comparison.theirs]
    return float(_differences(claim.kind, [{0: a} for a, _ in sides], [{0: b} for _, b in sides])[0])


def _baseline(steps: Steps, cells: Cells, alone: bool = False) -> float | None:
    """How far the best naive row of the races of one side is above tuned scikit-learn on the same entries, in mAP.

    The worst of the races. With `alone`, the row itself is set against scikit-learn, however good another is: a naive
    one, and any whose learning rate was not chosen for it. Such a row may be weak because of its rate.
    """
    found = []
    for where in steps:
        reference = cells.reference(where.data, where.scenario)
        own = alone and (where.row in NAIVE or not has_own_rates(where.experiment))
        rows = [
            [row[seed] - reference[seed] for seed in row.keys() & reference.keys()]
            for row in ([cells.scores(replace(where, metric="mAP"))] if own else cells.naive(where))
        ]
        found += [max(sum(row) / len(row) for row in rows if row)] if any(rows) else []
    return min(found, default=None)


def _decide(claim: Claim, one: Decision, fails: bool) -> Decision:
    """fails: whether the claim is excluded, corrected for its other comparisons."""
    alone = one.fails <= 1 - CONFIDENCE
    outcome = OPEN if one.best.found is None else HOLDS if one.fits else FAILS if alone else OPEN
    one = replace(one, outcome=outcome)
    if one.unfit:
        return replace(one, verdict=UNFIT, why="; ".join(one.unfit))
    if one.hindered:
        return replace(one, why=one.hindered)
    if one.fits:
        return replace(one, verdict=HOLDS)
    if fails:
        return replace(one, verdict=FAILS, why=_against(claim, one))
    if alone and one.unchecked:
        return replace(one, why=one.unchecked)
    return replace(
        one, why="clear only by itself, not among its comparisons" if alone else "the interval spans the margin"
    )


def _against(claim: Claim, one: Decision) -> str:
    """How a comparison does not hold, by the whole interval of every setting."""
    if claim.kind == "near":
        return "further apart"
    margin = limit(claim, one.theirs)
    reach = [(s.found.value, s.found.margin or 0.0) for s in one.settings if s.found]
    if all(value + half < -margin for value, half in reach):
        return "the other way round"
    if all(abs(value) + half <= margin for value, half in reach):
        return "no difference: within the margin"
    return "below the margin"
