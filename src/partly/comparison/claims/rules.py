"""How a claim is decided: holds, does not hold, or undecided, and why. The rules are these, and nothing else.

A comparison *holds* where the difference, paired over seeds, is more than chance in the claimed direction, corrected
(Bonferroni) for the number of claims that are decided on the same lines; not for the comparisons of one claim, which
needs them all. Of several settings of a method the one that validation scores highest is tested. It *does not hold*
where every setting, the paper's own and ours, is shown to gain less than a tenth of what the paper reports (less than
nothing, where it reports no figures), corrected (Holm) for all comparisons on the same lines, since one is enough; and
the baseline was checked. Both need seeds enough, and a baseline that is not weaker than tuned scikit-learn on the same
entries. All else is *undecided*.

A claim holds where all its comparisons do, and does not hold where one of them does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from partly.comparison.baselines import ALLOWED, yardstick
from partly.comparison.claims.cells import Cells
from partly.comparison.claims.stated import Claim, Comparison, Steps
from partly.comparison.statistics import LEVEL, Mean, Scores, holm, mean, paired_t

HOLDS, FAILS, OPEN = "holds", "does not hold", "undecided"
SEEDS, MANY_SEEDS, NEAR = 3, 5, 0.01  # at least so many; so many where two rows are this near each other
TENTH = 0.1  # of what the paper reports: less is no gain

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
        return self.baseline is not None and self.baseline < -ALLOWED


@dataclass(frozen=True)
class Decision:
    """One comparison, decided."""

    comparison: Comparison
    settings: tuple[Setting, ...]  # the paper's own first
    theirs: float | None  # what the paper reports, as a share
    verdict: str = OPEN
    why: str = ""
    among: int = 1  # claims that are decided on the same lines

    @property
    def best(self) -> Setting:
        """What validation chose."""
        return max(self.settings, key=lambda one: (one.found is not None, one.score))

    @property
    def fails(self) -> float:
        """p of the claim, of the setting that does best by it."""
        return max(one.fails for one in self.settings)


@dataclass(frozen=True)
class Decided:
    """One claim, decided."""

    claim: Claim
    verdict: str
    why: str
    decisions: tuple[Decision, ...] = ()

    def count(self, verdict: str) -> int:
        return sum(one.verdict == verdict for one in self.decisions)


def decide(claims: Iterable[Claim], cells: Cells) -> list[Decided]:
    """Every claim, in the order given."""
    measured = [(claim, [_measure(claim, one, cells) for one in claim.comparisons()]) for claim in claims]
    families: dict[tuple[str, ...], list[tuple[str, Decision]]] = {}
    for claim, one in ((claim, one) for claim, found in measured for one in found if one.best.found):
        families.setdefault(one.comparison.place, []).append((claim.id, one))
    decided: dict[int, Decision] = {}
    for family in families.values():
        among = len({name for name, _ in family})
        for (_, one), fail in zip(family, holm([one.fails for _, one in family]), strict=True):
            fits = among * one.best.fits <= 1 - LEVEL
            decided[id(one)] = _decide(replace(one, among=among), fits, fail <= 1 - LEVEL)
    return [_claim(claim, [decided.get(id(one), one) for one in found]) for claim, found in measured]


def _measure(claim: Claim, comparison: Comparison, cells: Cells) -> Decision:
    """The difference at each setting. A tuned row counts only where the other side was tuned too."""
    theirs = _theirs(claim, comparison)
    limit = claim.within / 100 if claim.kind == "near" else max(0.0, TENTH * (theirs or 0.0))
    settings = [_setting(claim.kind, a, b, limit, cells) for a, b in comparison.sides]
    ran = [one for one in settings if one.found or ", tuned " not in one.row]
    missing = [f"{one.row} ({one.experiment})" for side in comparison.sides[0] for one in side if not cells.scores(one)]
    why = f"not run: {missing[0]}" if missing else "not run: no seed is common to both sides"
    return Decision(comparison, tuple(ran or settings), theirs, why=why)


def _setting(kind: str, a: Steps, b: Steps, limit: float, cells: Cells) -> Setting:
    row = a[0].row if a[0].optimizer == "adamw" else f"{a[0].row} ({a[0].optimizer})"
    found = _differences(kind, [cells.scores(one) for one in a], [cells.scores(one) for one in b])
    if not len(found):
        return Setting(row, None)
    score = float(np.mean([cells.validation(one) for one in a]))
    return Setting(row, mean(found), *_tests(kind, found, limit), score, _baseline((*a, *b), cells))


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
        least = yardstick(cells.lines, where.data, where.scenario)
        rows = [[row[seed] - least[seed] for seed in row.keys() & least.keys()] for row in cells.naive(where)]
        found += [max(sum(row) / len(row) for row in rows if row)] if any(rows) else []
    return min(found, default=None)


def _decide(one: Decision, fits: bool, fails: bool) -> Decision:
    """fits, fails: whether the claim's contrary, or the claim, is excluded after the correction."""
    best = one.best
    assert best.found is not None  # only what was measured is decided
    needed = MANY_SEEDS if abs(best.found.value) < NEAR else SEEDS
    gains = [s for s in one.settings if s.weak and s.fits <= 1 - LEVEL]
    if best.found.count < needed:
        near = " where two rows are within a point" if needed == MANY_SEEDS else ""
        return replace(one, why=f"too few seeds: {best.found.count}, and {needed} are needed{near}")
    if best.weak or (gains and not fits):
        weak = best if best.weak else gains[0]
        below = -100 * (weak.baseline or 0.0)
        return replace(one, why=f"baseline not at its best: {weak.row}, {below:.1f} points of mAP below scikit-learn")
    if fits:
        return replace(one, verdict=HOLDS, why="")
    if not fails:
        alone = min(best.fits, one.fails) <= 1 - LEVEL
        words = "clear only by itself, not after the correction for what else is decided on the same lines"
        return replace(one, why=words if alone else "the interval spans 0")
    absent = [setting.row for setting in one.settings if setting.found is None]
    if absent:
        return replace(one, why=f"not run: {absent[0]}")
    if best.baseline is None:
        return replace(one, why="baseline not checked: scikit-learn was not run, and the interval is against the claim")
    return replace(one, verdict=FAILS, why="")


def _claim(claim: Claim, decisions: Sequence[Decision]) -> Decided:
    found = {one.verdict for one in decisions}
    if not decisions:
        return Decided(claim, OPEN, claim.open)
    if FAILS in found or found == {HOLDS}:
        return Decided(claim, FAILS if FAILS in found else HOLDS, "", tuple(decisions))
    why = dict.fromkeys(one.why.partition(":")[0] for one in decisions if one.verdict == OPEN)
    return Decided(claim, OPEN, "; ".join(why), tuple(decisions))
