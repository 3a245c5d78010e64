"""What scores over seeds and blocks say: intervals, ranks, paired tests, and which methods cannot be told apart.

A block is one race: a data set, a scenario, a head, an optimiser and a kind of validation. Higher scores are better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL = 0.95  # of intervals; what is rarer than 1 - LEVEL by chance is called a difference
MIN_GAP = 0.01  # of mAP between naive and all labels: a share of less says nothing

Scores = Mapping[int, float]  # seed -> score
Race = Mapping[str, Scores]  # method -> its scores


@dataclass(frozen=True)
class Mean:
    """A mean, half of its interval (None of a single value), and of how many values it is."""

    value: float
    margin: float | None
    count: int


def mean(values: Iterable[float]) -> Mean | None:
    """The mean of values and its interval by Student's t; None of no values."""
    x = np.fromiter(values, float)
    if not len(x):
        return None
    if len(x) == 1:
        return Mean(float(x[0]), None, 1)
    margin = stats.t.ppf((1 + LEVEL) / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x))
    return Mean(float(x.mean()), float(margin), len(x))


def gap_closed(method: Scores, naive: Scores, full: Scores) -> float | None:
    """Which share of the way from the naive scores to those with all labels a method goes, over the seeds that all
    three have. None where the gap is not real: too small to be divided by, or not beyond chance."""
    gaps = {seed: full[seed] - naive[seed] for seed in sorted(naive.keys() & full.keys())}
    seeds = method.keys() & gaps.keys()
    each = np.array(list(gaps.values()))
    if not seeds or each.mean() < MIN_GAP or paired_t(each) > 1 - LEVEL:
        return None
    gap = math.fsum(gaps[seed] for seed in seeds)
    return math.fsum(method[seed] - naive[seed] for seed in seeds) / gap if gap > 0 else None


# ---------------------------------------------------------------- tests; each returns p


def friedman(scores: npt.NDArray[Any]) -> float | None:
    """Whether any method differs, scores [blocks, methods]; None with fewer than three methods."""
    if scores.shape[1] < 3:
        return None
    if (scores == scores[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*scores.T).pvalue)


def signed_rank(differences: npt.NDArray[Any]) -> float:
    """Wilcoxon's test, two-sided, of paired differences [n] against 0; 1 where they speak for less than 0."""
    if not differences.any():
        return 1.0
    return min(1.0, 2 * float(stats.wilcoxon(differences, alternative="greater").pvalue))


def paired_t(differences: npt.NDArray[Any]) -> float:
    """Student's test, two-sided, of paired differences [n] against 0; 1 where they speak for less than 0.

    One difference alone says nothing.
    """
    if len(differences) < 2 or differences.mean() <= 0:
        return 1.0
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    t = differences.mean() / error if error > 0 else math.inf
    return float(2 * stats.t.sf(t, len(differences) - 1))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction for having made all of these tests."""
    corrected, least = [0.0] * len(p), 0.0
    for done, place in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        least = max(least, min(1.0, (len(p) - done) * p[place]))
        corrected[place] = least
    return corrected


# ---------------------------------------------------------------- methods over blocks


@dataclass(frozen=True)
class Ranking:
    """Methods over blocks, the leader first.

    The one rule for who leads, for a single block, for many, and for everything that is printed or drawn: the leader
    has the best mean rank, which in a single block is the highest mean score; a method is level with it unless a test
    shows that it is worse.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]  # 1 is best; equals share the mean of their ranks
    wins: tuple[int, ...]  # blocks in which the method was best
    lead: tuple[float, ...]  # how far the leader's score is above this one's, over blocks
    p: dict[str, float]  # of the leader against each other method, corrected
    over: str  # what was tested over, "blocks" or "seeds"
    friedman: float | None  # over blocks, with three methods or more
    blocks: int
    seeds: int  # that the leader shares with another method in every block, at most

    @property
    def leader(self) -> str:
        return self.names[0]

    @property
    def level(self) -> tuple[str, ...]:
        """Those that are not shown to be worse than the leader."""
        if self.friedman is not None and self.friedman > 1 - LEVEL:
            return self.names[1:]  # then no two are looked at
        return tuple(name for name in self.names[1:] if self.p[name] > 1 - LEVEL)


def rank(races: Sequence[Race]) -> Ranking | None:
    """Compare methods over blocks. None where no method has a score.

    Ranked are the methods that most blocks have, over the blocks that have all of these (if there is none, the methods
    that every block has), by their mean over seeds; a method with fewer than half of a block's seeds is not ranked
    there. Where there are enough blocks a test asks them (signed ranks of the means), else the seeds that two methods
    share (Student's t of the means over blocks): it speaks of these data only.
    """
    races = [_with_enough_seeds(race) for race in races]
    counts = Counter(name for race in races for name in race)
    for needed in (len(races) // 2 + 1, len(races)):
        names = [name for name, count in counts.items() if count >= needed]
        used = [race for race in races if names and race.keys() >= set(names)]
        if used:
            break
    else:
        return None
    means = np.array([[np.mean(list(race[name].values())) for name in names] for race in used])
    ranks = stats.rankdata(-means, axis=1)
    order = np.lexsort((-means.mean(axis=0), ranks.mean(axis=0)))
    names, means, ranks = [names[i] for i in order], means[:, order], ranks[:, order]
    many = len(used) >= enough(len(names))
    by_seed = [_by_seed(used, names[0], name) for name in names]
    differences = (means[:, :1] - means).T if many else by_seed
    corrected = holm([(signed_rank if many else paired_t)(one) for one in differences[1:]])
    return Ranking(
        tuple(names),
        tuple(ranks.mean(axis=0).tolist()),
        tuple((ranks == ranks.min(axis=1, keepdims=True)).sum(axis=0).tolist()),
        tuple((means[:, :1] - means).mean(axis=0).tolist()),
        dict(zip(names[1:], corrected, strict=True)),
        "blocks" if many else "seeds",
        friedman(means) if many else None,
        len(used),
        max(map(len, by_seed[1:] or by_seed)),
    )


def enough(methods: int) -> int:
    """Blocks that signed-rank tests of the leader against each other method need: with fewer they say "chance" after
    the correction even where one method is better in every block (p = 2 / 2^blocks)."""
    return math.ceil(1 + math.log2(max(1, methods - 1) / (1 - LEVEL)))


def _with_enough_seeds(race: Race) -> Race:
    """The methods of a block that have at least half of its seeds."""
    every = {seed for scores in race.values() for seed in scores}
    return {name: scores for name, scores in race.items() if scores and 2 * len(scores) >= len(every)}


def _by_seed(races: Sequence[Race], one: str, other: str) -> npt.NDArray[Any]:
    """Differences of two methods [seeds], the mean over blocks, for the seeds that both have in every block."""
    seeds = sorted(set.intersection(*(race[one].keys() & race[other].keys() for race in races)))
    return np.array([np.mean([race[one][seed] - race[other][seed] for race in races]) for seed in seeds])
