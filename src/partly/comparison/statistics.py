"""What scores over seeds and blocks say: intervals, ranks, paired tests, and which methods cannot be told apart.

A block is one race: a data set, a scenario, a head, an optimiser and a kind of validation. Higher scores are better.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

LEVEL = 0.95  # of intervals; what is rarer than 1 - LEVEL by chance is called a difference

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
    three have. None where there are no such seeds, or where there is no gap to close."""
    seeds = method.keys() & naive.keys() & full.keys()
    gap = math.fsum(full[seed] - naive[seed] for seed in seeds)
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
    """Methods over blocks, the best mean rank first."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]  # 1 is best; equals share the mean of their ranks
    wins: tuple[int, ...]  # blocks in which the method was best
    lead: tuple[float, ...]  # how far the first method's score is above this one's, over blocks
    p: dict[tuple[str, str], float]  # corrected, of every two methods, the better ranked first
    over: str  # what was tested over, "blocks" or "seeds"
    friedman: float | None  # over blocks, with three methods or more
    blocks: int
    seeds: int  # those that every method has in every block

    def differ(self, one: str, other: str) -> bool:
        """Whether the difference of these two is more than chance."""
        if self.friedman is not None and self.friedman > 1 - LEVEL:
            return False  # then no two are looked at
        return self.p[(one, other) if (one, other) in self.p else (other, one)] <= 1 - LEVEL

    @property
    def level(self) -> tuple[str, ...]:
        """Those that cannot be told from the first."""
        return tuple(name for name in self.names[1:] if not self.differ(self.names[0], name))

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Neighbours of which no two can be told apart, as (first, last) positions; the longest runs only."""
        found: list[tuple[int, int]] = []
        for first in range(len(self.names)):
            last = first
            while last + 1 < len(self.names) and not any(
                self.differ(self.names[i], self.names[last + 1]) for i in range(first, last + 1)
            ):
                last += 1
            if last > first and (not found or last > found[-1][1]):
                found.append((first, last))
        return found


def rank(races: Sequence[Race]) -> Ranking | None:
    """Compare methods over blocks. None where no method has a score.

    Ranked are the methods that most blocks have, over the blocks that have all of these (if there is none, the methods
    that every block has), by their mean over common seeds. Where there are enough blocks a test asks them
    (signed ranks of the means), else the seeds (Student's t of the means over blocks): it speaks of these data only.
    """
    counts = Counter(name for race in races for name in race)
    for needed in (len(races) // 2 + 1, len(races)):
        names = [name for name, count in counts.items() if count >= needed]
        used = [(race, seeds) for race in races if (seeds := _common(race, names))]
        if used:
            break
    else:
        return None
    means = np.array([[np.mean([race[name][s] for s in sorted(seeds)]) for name in names] for race, seeds in used])
    ranks = stats.rankdata(-means, axis=1)
    order = np.argsort(ranks.mean(axis=0), kind="stable")
    names, means, ranks = [names[i] for i in order], means[:, order], ranks[:, order]
    everywhere = sorted(set.intersection(*(seeds for _, seeds in used)))
    many = len(used) >= enough(len(names))
    samples = means if many else _by_seed([race for race, _ in used], names, everywhere)
    return Ranking(
        tuple(names),
        tuple(ranks.mean(axis=0).tolist()),
        tuple((ranks == ranks.min(axis=1, keepdims=True)).sum(axis=0).tolist()),
        tuple((means[:, :1] - means).mean(axis=0).tolist()),
        _pairs(names, samples, signed_rank if many else paired_t),
        "blocks" if many else "seeds",
        friedman(means) if many else None,
        len(used),
        len(everywhere),
    )


def enough(methods: int) -> int:
    """Blocks that signed-rank tests of every two methods need: with fewer they say "chance" after the correction even
    where one method is better in every block (p = 2 / 2^blocks)."""
    pairs = max(1, math.comb(methods, 2))
    return math.ceil(1 + math.log2(pairs / (1 - LEVEL)))


def not_worse(race: Race) -> tuple[str, set[str]] | None:
    """The best method of one block, and those that its seeds do not show to be worse. None without scores."""
    seeds = sorted(_common(race, list(race)))
    if not seeds:
        return None
    scores = {name: np.array([values[seed] for seed in seeds]) for name, values in race.items()}
    best = max(scores, key=lambda name: float(scores[name].mean()))
    others = [name for name in scores if name != best]
    corrected = holm([paired_t(scores[best] - scores[name]) for name in others])
    return best, {name for name, p in zip(others, corrected, strict=True) if p > 1 - LEVEL}


def _common(race: Race, names: Sequence[str]) -> set[int]:
    """Seeds that all of these methods have in a block."""
    return set.intersection(*(set(race.get(name, ())) for name in names)) if names else set()


def _by_seed(races: Sequence[Race], names: Sequence[str], seeds: Sequence[int]) -> Any:
    """[seeds, methods], the mean over blocks."""
    scores = np.array([[[race[name][seed] for name in names] for seed in seeds] for race in races], float)
    return scores.reshape(len(races), len(seeds), len(names)).mean(axis=0)


def _pairs(names: Sequence[str], samples: npt.NDArray[Any], test: Callable[..., float]) -> dict[tuple[str, str], float]:
    """The corrected p of every two columns of samples [n, methods]."""
    pairs = list(combinations(range(len(names)), 2))
    corrected = holm([test(samples[:, i] - samples[:, j]) for i, j in pairs])
    return {(names[i], names[j]): p for (i, j), p in zip(pairs, corrected, strict=True)}
