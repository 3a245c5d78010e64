"""Measure what question selection gains over random questions.

The random control group is a fair sample of the unknown entries, so both kinds of answers are judged on it, by the
Brier score of a model's probabilities (squared error), which a few wrong answers do not dominate.

1. Split the random answers in two halves by item, and the selected answers, in the order they were given, in two.
2. Train a model on one random half, and models on half of the first selected answers: a quarter as many, half as
   many, and as many. Judge all of them on the other random half, without items that they were trained on.
3. Swap the halves, and repeat with other splits.

The difference between swapped halves estimates the sampling error (a delete-half jackknife: exact for means,
conservative otherwise) and gives a confidence interval for each difference. The lower end of the savings is the share
of selected answers that can be left out while they are still significantly ahead. The upper end is the share that can
be left out before they are significantly behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from partly.labels import Labels

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Learn = Callable[[Labels], Callable[[Positions], npt.NDArray[Any]]]  # labels -> (rows -> probabilities [n, L])
MIN_RANDOM_ANSWERS = 20  # before anything is measured
SPLITS = 10  # random halves, each used both ways
SELECTED_SHARES = (0.25, 0.5, 1.0)  # selected answers that a model learns from, as a share of the random ones
QUANTILE = 0.975  # of the 95 % confidence interval


@dataclass(frozen=True)
class AnswerSeries:
    """Answers in the order they were given: entries [n], z +1 yes or -1 no."""

    rows: Positions
    columns: Positions
    z: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> AnswerSeries:
        return AnswerSeries(self.rows[index], self.columns[index], self.z[index])

    def add_to(self, labels: Labels) -> Labels:
        return labels.with_entries(self.rows, self.columns, self.z)


@dataclass(frozen=True)
class QueryGain:
    """Share of the random answers that selection saves, with its 95 % interval.

    All three are NaN if there are too few answers. An unknown end of the interval is -inf, or 1. Both ends are -inf if
    selection is significantly worse than random questions.
    """

    random: int  # answers
    chosen: int
    saved: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def words(self) -> str:
        if self.low > 0:
            at_least = "at least " if self.saved >= 1 - SELECTED_SHARES[0] else ""
            return (
                f"Selection saves {at_least}{100 * self.saved:.0f} % of the answers "
                f"(95 % interval {100 * self.low:.0f} % to {100 * self.high:.0f} %): "
                f"about {100 * (1 - self.saved):.0f} selected answers teach a model as much as 100 random ones."
            )
        counts = f"{self.random} random and {self.chosen} selected answers"
        if self.high <= 0:
            return f"Selection does not help: the same number of random answers teaches a model more ({counts})."
        if math.isnan(self.saved):
            return f"Too early to measure: {counts}. At least {MIN_RANDOM_ANSWERS} of each are needed."
        return f"No significant difference yet: {counts}."

    @classmethod
    def from_plain(cls, stored: dict[str, Any]) -> QueryGain:
        """Restore what `plain` returned."""
        if stored["saved"] is None:
            return cls(stored["random"], stored["chosen"])
        ends = (-math.inf if stored[name] is None else stored[name] for name in ("low", "high"))
        return cls(stored["random"], stored["chosen"], stored["saved"], *ends)

    def plain(self) -> dict[str, Any]:
        """Return values for JSON, which has neither NaN nor infinity."""
        numbers = {name: value if math.isfinite(value) else None for name, value in asdict(self).items()}
        return numbers | {"words": self.words}


def measure_gain(given: Labels, random: AnswerSeries, selected: AnswerSeries, learn: Learn, seed: int) -> QueryGain:
    """Compare both kinds of answers; `given` holds the labels that were known before anybody was asked."""
    if len(random) < MIN_RANDOM_ANSWERS or len(selected) < len(random):
        return QueryGain(len(random), len(selected))
    rng = np.random.default_rng(seed)
    leads = np.array([_leads(given, random, selected, learn, rng) for _ in range(SPLITS)])  # [splits, 2, K]
    standard_error = np.sqrt(np.mean(((leads[:, 0] - leads[:, 1]) / 2) ** 2, axis=0))
    savings = estimate_savings(leads.mean(axis=(0, 1)), t.ppf(QUANTILE, SPLITS) * standard_error)
    return QueryGain(len(random), len(selected), *savings)


def estimate_savings(lead: Floats, error: Floats) -> tuple[float, float, float]:
    """Return the saved share of answers and its interval, from the lead [K] of each of `SELECTED_SHARES`.

    More answers should not be worse, so leads are made monotone: a significant lead must hold for all larger numbers
    of answers, a significant lag for all smaller ones.
    """
    log_shares = np.log(SELECTED_SHARES)

    def running_min(values: Floats) -> Floats:
        return -np.maximum.accumulate(-values[::-1])[::-1]

    running_max = np.maximum.accumulate
    equal = np.interp(0, (running_max(lead) + running_min(lead)) / 2, log_shares)
    low = np.interp(0, running_min(lead - error), log_shares, right=math.inf)
    high = np.interp(0, running_max(lead + error), log_shares, left=-math.inf, right=math.inf)
    saved, low_end, high_end = (1 - np.exp([equal, low, high])).tolist()
    return saved, low_end, high_end


def _leads(
    given: Labels, random: AnswerSeries, selected: AnswerSeries, learn: Learn, rng: np.random.Generator
) -> Floats:
    """Return how much lower the error is with selected than with random answers, [2, K]: for both ways of a split."""
    items, order = np.unique(random.rows), rng.random(len(selected))
    half = np.isin(random.rows, rng.permutation(items)[: len(items) // 2])
    leads = []
    for is_test, rank in ((half, order), (~half, -order)):
        test, train = random[is_test], random[~is_test]
        usable = np.flatnonzero(~np.isin(selected.rows, test.rows))
        random_error = brier_score(learn(train.add_to(given)), test)
        counts = [round(share * len(train)) for share in SELECTED_SHARES]
        samples = [usable[: 2 * count][np.argsort(rank[usable[: 2 * count]])[:count]] for count in counts]
        errors = [brier_score(learn(selected[np.sort(sample)].add_to(given)), test) for sample in samples]
        leads.append([random_error - error for error in errors])
    return np.array(leads)


def brier_score(predict: Callable[[Positions], npt.NDArray[Any]], answers: AnswerSeries) -> float:
    p = np.asarray(predict(answers.rows), np.float64)[np.arange(len(answers)), answers.columns]
    return float(np.mean((p - (answers.z == 1)) ** 2))
