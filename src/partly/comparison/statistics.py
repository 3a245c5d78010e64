"""Statistics of scores over seeds and groups: intervals, ranks, paired tests, and ties.

A group is one comparison: a data set, a scenario, a head, an optimizer and a kind of validation. Higher scores are
better.
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

CONFIDENCE = 0.95  # of intervals; tests are at the significance level 1 - CONFIDENCE
MIN_GAP = 0.01  # of mAP between naive and all labels, below which no share of it is reported

Scores = Mapping[int, float]  # seed -> score
MethodScores = Mapping[str, Scores]  # method -> its scores


@dataclass(frozen=True)
class Mean:
    """A mean, half of its interval (None for a single value), and the number of values."""

    value: float
    margin: float | None
    count: int


def mean(values: Iterable[float]) -> Mean | None:
    """Return the mean and its interval by Student's t; None without values."""
    x = np.fromiter(values, float)
    if not len(x):
        return None
    if len(x) == 1:
        return Mean(float(x[0]), None, 1)
    margin = stats.t.ppf((1 + CONFIDENCE) / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x))
    return Mean(float(x.mean()), float(margin), len(x))


def gap_closed(method: Scores, naive: Scores, full: Scores) -> float | None:
    """Return the share of the gap between naive and full scores that a method closes, over common seeds.

    None where the gap is too small or not significant.
    """
    gaps = {seed: full[seed] - naive[seed] for seed in sorted(naive.keys() & full.keys())}
    seeds = method.keys() & gaps.keys()
    values = np.array(list(gaps.values()))
    if not seeds or values.mean() < MIN_GAP or paired_t(values) > 1 - CONFIDENCE:
        return None
    gap = math.fsum(gaps[seed] for seed in seeds)
    return math.fsum(method[seed] - naive[seed] for seed in seeds) / gap if gap > 0 else None


# ---------------------------------------------------------------- tests; each returns p


def friedman(scores: npt.NDArray[Any]) -> float | None:
    """Friedman's test of scores [groups, methods]; None with fewer than three methods."""
    if scores.shape[1] < 3:
        return None
    if (scores == scores[:, :1]).all():
        return 1.0
    return float(stats.friedmanchisquare(*scores.T).pvalue)


def signed_rank(differences: npt.NDArray[Any]) -> float:
    """Two-sided Wilcoxon signed-rank test of paired differences [n] against 0; 1 where they are negative."""
    if not differences.any():
        return 1.0
    return min(1.0, 2 * float(stats.wilcoxon(differences, alternative="greater").pvalue))


def paired_t(differences: npt.NDArray[Any]) -> float:
    """Two-sided paired t-test of differences [n] against 0; 1 where they are negative, or for a single one."""
    if len(differences) < 2 or differences.mean() <= 0:
        return 1.0
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    t = differences.mean() / error if error > 0 else math.inf
    return float(2 * stats.t.sf(t, len(differences) - 1))


def holm(p: Sequence[float]) -> list[float]:
    """Correct p-values for multiple tests by Holm's method."""
    corrected, largest = [0.0] * len(p), 0.0
    for position, index in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - position) * p[index]))
        corrected[index] = largest
    return corrected


# ---------------------------------------------------------------- methods over groups


@dataclass(frozen=True)
class Ranking:
    """Methods ranked over groups, the leader first.

    This is the only rule for leaders, in tables, charts and sentences: the leader has the best mean rank, which in a
    single group is the highest mean score. A method is tied with it unless a test shows that it is worse.
    """

    names: tuple[str, ...]
    ranks: tuple[float, ...]  # 1 is best; equal scores share their mean rank
    wins: tuple[int, ...]  # groups in which the method was best
    lead: tuple[float, ...]  # mean difference between the leader's score and this one
    p: dict[str, float]  # of the leader against each other method, corrected
    over: str  # units of the test, "groups" or "seeds"
    friedman: float | None  # over groups, with three methods or more
    groups: int
    seeds: int  # largest number that the leader shares with another method in every group

    @property
    def leader(self) -> str:
        return self.names[0]

    @property
    def tied(self) -> tuple[str, ...]:
        """Methods that are not significantly worse than the leader."""
        if self.friedman is not None and self.friedman > 1 - CONFIDENCE:
            return self.names[1:]  # without a significant overall test, no pair is tested
        return tuple(name for name in self.names[1:] if self.p[name] > 1 - CONFIDENCE)


def rank(groups: Sequence[MethodScores]) -> Ranking | None:
    """Compare methods over groups. None where no method has a score.

    Ranked are the methods that most groups have, over the groups that have all of these (if there is none, the methods
    that every group has), by their mean over seeds. A method with fewer than half of a group's seeds is not ranked
    there. With enough groups, the test is over groups (signed ranks of the means). Otherwise it is over the seeds that
    two methods share (Student's t of the means over groups), and holds for these data only.
    """
    groups = [_with_enough_seeds(group) for group in groups]
    counts = Counter(name for group in groups for name in group)
    for needed in (len(groups) // 2 + 1, len(groups)):
        names = [name for name, count in counts.items() if count >= needed]
        used = [group for group in groups if names and group.keys() >= set(names)]
        if used:
            break
    else:
        return None
    means = np.array([[np.mean(list(group[name].values())) for name in names] for group in used])
    ranks = stats.rankdata(-means, axis=1)
    order = np.lexsort((-means.mean(axis=0), ranks.mean(axis=0)))
    names, means, ranks = [names[i] for i in order], means[:, order], ranks[:, order]
    over_groups = len(used) >= min_groups(len(names))
    by_seed = [_difference_by_seed(used, names[0], name) for name in names]
    differences = (means[:, :1] - means).T if over_groups else by_seed
    corrected = holm([(signed_rank if over_groups else paired_t)(values) for values in differences[1:]])
    return Ranking(
        tuple(names),
        tuple(ranks.mean(axis=0).tolist()),
        tuple((ranks == ranks.min(axis=1, keepdims=True)).sum(axis=0).tolist()),
        tuple((means[:, :1] - means).mean(axis=0).tolist()),
        dict(zip(names[1:], corrected, strict=True)),
        "groups" if over_groups else "seeds",
        friedman(means) if over_groups else None,
        len(used),
        max(map(len, by_seed[1:] or by_seed)),
    )


def min_groups(methods: int) -> int:
    """Number of groups from which a corrected signed-rank test can be significant at all.

    The smallest p-value is 2 / 2^groups, reached where one method is better in every group.
    """
    return math.ceil(1 + math.log2(max(1, methods - 1) / (1 - CONFIDENCE)))


def _with_enough_seeds(group: MethodScores) -> MethodScores:
    """Methods that have at least half of a group's seeds."""
    seeds = {seed for scores in group.values() for seed in scores}
    return {name: scores for name, scores in group.items() if scores and 2 * len(scores) >= len(seeds)}


def _difference_by_seed(groups: Sequence[MethodScores], first: str, second: str) -> npt.NDArray[Any]:
    """Mean difference of two methods over groups, for each seed that both have in every group, [seeds]."""
    seeds = sorted(set.intersection(*(group[first].keys() & group[second].keys() for group in groups)))
    return np.array([np.mean([group[first][seed] - group[second][seed] for group in groups]) for seed in seeds])
