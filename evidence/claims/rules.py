"""How a claim is decided: holds, does not hold, or undecided, and why. The rules are these, and nothing else.

A comparison *holds* where the difference, paired over seeds, is more than chance in the claimed direction. Of several
settings of a method the one that validation scores highest is tested. It *does not hold* where every setting, the
paper's own and ours, is shown to gain nothing that counts (`limit`), and the baseline was checked. Both need seeds
enough, and a baseline that is not weaker than tuned scikit-learn on the same entries. All else is *undecided*.

A claim holds where all its comparisons do, each tested at 5 %: to say so wrongly, the one that is not true must pass
(the intersection-union test), so nothing is corrected for their number. It does not hold where one of them does not;
since one is enough, these tests are corrected for their number (Holm). Then, of all claims that could be decided, the
share of wrong decisions, of either kind, is held at 5 % (Benjamini and Hochberg): each claim has one two-sided p, the
smaller one of its two directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control

from evidence.claims.cells import Cells
from evidence.claims.specs import Claim, Comparison, Steps
from partly.comparison.groups import MAX_BASELINE_DEFICIT
from partly.comparison.statistics import CONFIDENCE, Mean, Scores, holm, mean, paired_t

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
SEEDS, MANY_SEEDS, NEAR = 3, 5, 0.01  # at least so many; so many where two rows are this near each other
TENTH = 0.1  # of what the paper reports: less is no gain
NOTHING = 0.005  # nor is less than this, where the paper reports more, or no figure

Differences = npt.NDArray[np.float64]  # [seeds]


@dataclass(frozen=True)
class Setting:
    """One setting of the method in one comparison."""

    row: str  # with the optimiser, where it is not the usual one
    found: Mean | None  # the difference (of a trend: its change from the first step to the last); None: not run
    fits: float = 1.0  # p of the claim's contrary
    fails: float = 1.0  # p of the claim
    score: float = -1.0  # on the validation part
    baseline: float | None = None  # how far the baseline is above tuned scikit-learn, in mAP; None: not known

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
    tests = [one for one in measured if not (one.hindered or one.unchecked)]
    fails = dict(zip(map(id, tests), holm([one.fails for one in tests]), strict=True))
    decisions = tuple(_decide(claim, one, fails.get(id(one), 1.0) <= 1 - CONFIDENCE) for one in measured)
    each = {one.verdict for one in decisions}
    verdict = FAILS if FAILS in each else HOLDS if each == {HOLDS} else OPEN
    why = dict.fromkeys(
        one.why if verdict == FAILS else one.why.partition(":")[0]
        for one in decisions
        if one.verdict == verdict != HOLDS
    )
    p = [fails[id(one)] for one in tests if not one.fits]
    if not any(one.hindered for one in measured):
        p.append(max(one.best.fits for one in measured))
    return Decided(claim, verdict, "; ".join(why), decisions, min(p, default=None))


def _corrected(one: Decided, q: float) -> Decided:
    """One claim among all."""
    if one.verdict == OPEN or q <= 1 - CONFIDENCE:
        return replace(one, q=q)
    return replace(one, verdict=OPEN, why="clear only by itself, not after the correction for all claims", q=q)


def _measure(claim: Claim, comparison: Comparison, cells: Cells) -> Decision:
    """The difference at each setting. A tuned row counts only where the other side was tuned too."""
    theirs = _theirs(claim, comparison)
    settings = [_setting(claim, a, b, limit(claim, theirs), cells) for a, b in comparison.sides]
    ran = [one for one in settings if one.found or ", tuned " not in one.row]
    one = Decision(comparison, tuple(ran or settings), theirs)
    return replace(one, hindered=_hindered(one, cells))


def limit(claim: Claim, theirs: float | None) -> float:
    """What less than is no gain: a tenth of the paper's, or half a point where the paper has more or gives no figures.
    Of a claim that there is none, how far apart the rows may be."""
    if claim.kind == "near":
        return claim.within / 100
    if theirs is None:
        return NOTHING
    return max(0.0, TENTH * theirs, NOTHING if theirs > NOTHING else 0.0)


def _hindered(one: Decision, cells: Cells) -> str:
    """Why a comparison cannot be decided whatever came out; "" where it can."""
    best, sides = one.best, one.comparison.sides[0]
    if best.found is None:
        missing = [f"{cell.row} ({cell.experiment})" for side in sides for cell in side if not cells.scores(cell)]
        return f"not run: {missing[0]}" if missing else "not run: no seed is common to both sides"
    needed = MANY_SEEDS if abs(best.found.value) < NEAR else SEEDS
    if best.found.count < needed:
        near = " where two rows are within a point" if needed == MANY_SEEDS else ""
        return f"too few seeds: {best.found.count}, and {needed} are needed{near}"
    gains = [s for s in one.settings if s.weak and s.fits <= 1 - CONFIDENCE]
    if best.weak or (gains and not one.fits):
        weak = best if best.weak else gains[0]
        below = -100 * (weak.baseline or 0.0)
        return f"baseline not at its best: {weak.row}, {below:.1f} points of mAP below scikit-learn"
    return ""


def _setting(claim: Claim, a: Steps, b: Steps, limit: float, cells: Cells) -> Setting:
    row = a[0].row if a[0].optimizer == "adamw" else f"{a[0].row} ({a[0].optimizer})"
    found = _differences(claim.kind, [cells.scores(one) for one in a], [cells.scores(one) for one in b])
    if not len(found):
        return Setting(row, None)
    score = float(np.mean([cells.validation(one) for one in a]))
    return Setting(row, mean(found), *_tests(claim.kind, found, limit), score, _baseline((*a, *b), cells))


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
    return paired_t(found), paired_t(limit - found)


def _theirs(claim: Claim, comparison: Comparison) -> float | None:
    """What the paper reports for the same, in the claimed direction."""
    if not comparison.theirs:
        return None
    sides = [[one.share if one else 0.0 for one in pair] for pair in comparison.theirs]
    return float(_differences(claim.kind, [{0: a} for a, _ in sides], [{0: b} for _, b in sides])[0])


def _baseline(cells_of: Steps, cells: Cells) -> float | None:
    """How far the best naive row of a race is above tuned scikit-learn on the same entries; the worst of the races."""
    found = []
    for where in {(one.data, one.scenario): one for one in cells_of}.values():
        reference = cells.reference(where.data, where.scenario)
        rows = [[row[seed] - reference[seed] for seed in row.keys() & reference.keys()] for row in cells.naive(where)]
        found += [max(sum(row) / len(row) for row in rows if row)] if any(rows) else []
    return min(found, default=None)


def _decide(claim: Claim, one: Decision, fails: bool) -> Decision:
    """fails: whether the claim is excluded, corrected for its other comparisons."""
    if one.hindered:
        return replace(one, why=one.hindered)
    if one.fits:
        return replace(one, verdict=HOLDS)
    if fails:
        return replace(one, verdict=FAILS, why=_against(claim.kind, one))
    if one.fails <= 1 - CONFIDENCE and one.unchecked:
        return replace(one, why=one.unchecked)
    alone = one.fails <= 1 - CONFIDENCE
    return replace(one, why="clear only by itself, not among its comparisons" if alone else "the interval spans 0")


def _against(kind: str, one: Decision) -> str:
    """How a comparison does not hold, by the whole interval of every setting."""
    if kind == "near":
        return "further apart"
    reach = [(s.found.value, s.found.margin or 0.0) for s in one.settings if s.found]
    if all(value + margin < 0 for value, margin in reach):
        return "the other way round"
    if all(abs(value) + margin <= NOTHING for value, margin in reach):
        return "no difference: within 0.5 points"
    return "less than 0.5 points" if one.theirs is None else "far less than the paper's"
