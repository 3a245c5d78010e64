"""Test whether entries are missing at random, and weigh known entries where yes and no are known at different rates.

Suppose that, within a label, a yes is known with one chance and a no with another, whatever the item looks like. The
scores of unknown entries are then a mixture of those of known yes and known no, and the share w of yes among unknown
entries follows from three means (the moment version of label-shift correction: Z. Lipton, Y.-X. Wang, A. Smola.
Detecting and Correcting for Label Shift with Black Box Predictors. ICML 2018):

    mean(unknown) = w * mean(yes) + (1 - w) * mean(no)

- Missing at random, w is the share of yes among known entries, so known and unknown entries have the same mean score.
  This is tested, over all labels together, with a jackknife over items.
- Where it is rejected, the odds of yes among unknown entries are those among known ones times one factor, the same for
  all labels; each label is drawn to its own w as far as its entries determine it (empirical Bayes). A known yes then
  stands for (known + hidden yes) / known yes entries, and a known no likewise.
- The mixture must also fit the mean of the squared score. Where it does not, something else decides what is known
  (hard negatives, easy items), and known entries cannot be weighted.

Any score that is higher for yes will do, calibrated or not. Needed are sums by label and group of items alone, so
scores may come in blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, stdtr

from partly.labels import Labels

Floats = npt.NDArray[np.float64]
Kind = Literal["complete", "untested", "at-random", "by-answer", "uncertain", "unexplained"]
YES, NO, UNKNOWN = 0, 1, 2  # kinds of entries, in this order in all sums

BLOCK = 4096  # items that are looked at together
GROUPS = 20  # of items, for the jackknife
SIGNIFICANCE_LEVEL = 0.01  # of rejecting "missing at random" where it holds
MISFIT_RISK = 0.002  # of rejecting the mixture where it holds: what it explains is corrected rather than withheld
MIN_ITEMS = 2 * GROUPS
MIN_ENTRIES = 20  # known yes, known no and unknown entries, over all labels, below which nothing is tested
MIN_OF_LABEL = 5  # of each kind, below which a label has no share of its own
MAX_ERROR = 0.4  # of the log ratio of the rates at which yes and no are known: with a larger one nothing is weighted
FACTORS = (1e-9, 1e9)  # of the odds, between which it is looked for


@dataclass(frozen=True, eq=False)
class Missingness:
    """Result of the test, with the weights of known yes and known no of each label, [L]."""

    kind: Kind
    p_value: float = float("nan")
    yes_weight: Floats | None = None
    no_weight: Floats | None = None
    hidden_yes: Floats | None = None  # [L], estimated
    yes_known: float = float("nan")  # estimated share of all yes that is known
    no_known: float = float("nan")

    @property
    def weights(self) -> tuple[Floats, Floats] | None:
        """Return the weights of known yes and known no, where they are to be weighed."""
        if self.kind != "by-answer" or self.yes_weight is None or self.no_weight is None:
            return None
        return self.yes_weight, self.no_weight

    @property
    def biased(self) -> bool:
        """True if scores on known entries do not hold for all entries."""
        return self.kind == "by-answer" or self.withheld

    @property
    def withheld(self) -> bool:
        """True if such scores cannot be corrected either."""
        return self.kind in ("uncertain", "unexplained")

    def describe(self) -> list[str]:
        """Return sentences on the result and its consequences."""
        if not self.biased:
            return []
        result = f"Labels are not missing at random (p = {self.p_value:.2g})"
        if self.withheld:
            reason = "and known entries differ from unknown ones with the same answer"
            if self.kind == "uncertain":
                reason = "and too few entries are known to estimate the rates at which yes and no are known"
            return [
                f"{result}, {reason}.",
                "Scores on known entries would be misleading and are withheld. Draw some items at random, label them "
                "completely, and test on them.",
            ]
        shares = f"an estimated {self.yes_known:.0%} of all yes and {self.no_known:.0%} of all no are known"
        return [
            f"{result}: {shares}.",
            "Scores are corrected by weighting known entries. The correction assumes that, within a label, yes and no "
            "are each known at random.",
        ]


class EntrySums:
    """Count, sum and sum of squares of the scores of known yes, known no and unknown entries, by group and label."""

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.sums = np.zeros((3, GROUPS, labels.shape[1], 3))
        yes, no = (int(counts.sum()) for counts in labels.counts())
        self.complete = yes + no == labels.shape[0] * labels.shape[1]
        self.testable = not self.complete and yes > 0 and no > 0

    def passing(self, parts: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the blocks unchanged, each with its rows, and add them to the sums."""
        every = np.arange(len(self.labels))
        for rows, block in parts:
            if self.testable:
                self.add(every[rows], block)
            yield rows, block

    def add(self, index: npt.NDArray[np.int64], block: Any) -> None:
        """Add scores [B, L] of the items at these positions."""
        scores, z = to_unit_interval(block), self.labels.rows(index)
        for group in range(GROUPS):
            members = index % GROUPS == group
            if members.any():
                s, values = scores[members], z[members]
                for kind, value in ((YES, 1), (NO, -1), (UNKNOWN, 0)):
                    mask = values == value
                    chosen = np.where(mask, s, 0)
                    moments = (mask.sum(axis=0), chosen.sum(axis=0), (chosen**2).sum(axis=0))
                    self.sums[kind, group] += np.stack(moments, axis=-1)

    @cached_property
    def missingness(self) -> Missingness:
        """Result of the test; valid when all blocks are added."""
        return self.decide(SIGNIFICANCE_LEVEL)

    def decide(self, risk: float) -> Missingness:
        """Run the test at a significance level."""
        if not self.testable:
            return Missingness("complete" if self.complete else "untested")
        return decide_from_sums(self.sums, len(self.labels), risk)

    def without(self, group: int) -> tuple[Floats, Floats] | None:
        """Return the weights that follow from all items but those of one group."""
        if self.missingness.weights is None:
            return None
        return _compute_weights(self.sums.sum(axis=1) - self.sums[:, group], "by-answer").weights


def missingness(scores: Any, labels: Labels, risk: float = SIGNIFICANCE_LEVEL) -> Missingness:
    """Test entries by scores [N, L] that were made without having seen the items; logits or probabilities."""
    sums, array = EntrySums(labels), np.asarray(scores)
    blocks = (slice(start, min(start + BLOCK, len(labels))) for start in range(0, len(labels), BLOCK))
    for _ in sums.passing((rows, array[rows]) for rows in blocks):
        pass
    return sums.decide(risk)


def estimate_hidden_yes(scores: Any, labels: Labels) -> Floats:
    """Return how many yes are hidden among the unknown entries of each label, [L], whether or not the test rejects."""
    sums = EntrySums(labels)
    sums.add(np.arange(len(labels)), scores)
    hidden = _compute_weights(sums.sums.sum(axis=1), "by-answer").hidden_yes
    assert hidden is not None
    return hidden


def to_unit_interval(scores: Any) -> Floats:
    """Return probabilities unchanged, and other scores through a sigmoid."""
    values = np.asarray(scores, np.float64)
    return values if not values.size or (values.min() >= 0 and values.max() <= 1) else np.asarray(expit(values))


def decide_from_sums(sums: Floats, items: int, risk: float = SIGNIFICANCE_LEVEL) -> Missingness:
    """Decide by the sums of scores [3 kinds, GROUPS, L, 3 moments]."""
    total = sums.sum(axis=1)
    usable = _usable(total)
    if items < MIN_ITEMS or (total[:, usable, 0].sum(axis=1) < MIN_ENTRIES).any():
        return Missingness("untested")
    p = _p_value(_difference, sums)
    if not p < risk:
        return Missingness("untested" if np.isnan(p) else "at-random", p)
    misfit = 2 * np.nanmin([1.0, _p_value(_excess, sums), _p_value(_excess_of_squares, sums)])
    result = _compute_weights(total, "unexplained" if misfit < MISFIT_RISK else "by-answer", p)
    unsure = result.kind == "by-answer" and not _error(_log_rates, sums) <= MAX_ERROR
    return replace(result, kind="uncertain") if unsure else result


def _error(statistic: Callable[[Floats], float], sums: Floats) -> float:
    """Return the standard error of a statistic of the sums over all items, by a jackknife over groups of them."""
    total = sums.sum(axis=1)
    values = [statistic(total - sums[:, group]) for group in range(GROUPS)]
    return float(np.sqrt((GROUPS - 1) * np.var(values)))


def _p_value(statistic: Callable[[Floats], float], sums: Floats) -> float:
    """Return the two-sided p-value of a statistic that is 0 under the hypothesis; NaN if it never varies."""
    value, error = statistic(sums.sum(axis=1)), _error(statistic, sums)
    if not error > 1e-9 * max(abs(value), 1e-9):
        return float("nan")
    return float(2 * stdtr(GROUPS - 1, -abs(value / error)))


def _usable(total: Floats) -> npt.NDArray[np.bool_]:
    """Labels with entries of each kind."""
    return np.asarray((total[..., 0] > 0).all(axis=0))


def _means(total: Floats) -> tuple[Floats, Floats, Floats]:
    """Count, mean score and mean squared score, each [3 kinds, L]; 0 where there are no entries."""
    count = total[..., 0]
    score, square = (total[..., k] / np.maximum(count, 1) for k in (1, 2))
    return count, score, square


def _precision(total: Floats) -> Floats:
    """Weight of each label, [L]: the inverse variance of mean(unknown) - mean(known), for equal entries."""
    yes, no, unknown = total[..., 0]
    return np.where(_usable(total), (yes + no) * unknown / np.maximum(yes + no + unknown, 1), 0.0)


def _difference(total: Floats) -> float:
    """Weighted sum over labels of how much higher unknown entries score than known ones."""
    (yes, no, _), score, _ = _means(total)
    known = (yes * score[YES] + no * score[NO]) / np.maximum(yes + no, 1)
    return float((_precision(total) * (score[UNKNOWN] - known)).sum())


def _excess(total: Floats) -> float:
    """Excess score of unknown entries over the mixture; not 0 where no share from 0 to 1 fits."""
    return float((_precision(total) * _gap(total, _means(total)[1])).sum())


def _excess_of_squares(total: Floats) -> float:
    return float((_precision(total) * _gap(total, _means(total)[2])).sum())


def _gap(total: Floats, moment: Floats) -> Floats:
    """A moment [3 kinds, L] of unknown entries less that of the fitted mixture, [L]."""
    shares = _shares(total, _factor(total))
    return np.asarray(moment[UNKNOWN] - shares * moment[YES] - (1 - shares) * moment[NO])


def _shares(total: Floats, factor: float) -> Floats:
    """Share of yes among unknown entries, [L], whose odds are those among known entries times the factor."""
    yes, no = total[YES, :, 0], total[NO, :, 0]
    return np.divide(yes * factor, no + yes * factor, out=np.zeros_like(yes), where=(yes > 0) & (no > 0))


def _factor(total: Floats) -> float:
    """The factor with which the mixture has the mean score of unknown entries, by bisection."""
    score, weight = _means(total)[1], _precision(total)
    wanted, per_share = weight * (score[UNKNOWN] - score[NO]), weight * (score[YES] - score[NO])

    def remainder(factor: float) -> float:
        return float((wanted - per_share * _shares(total, factor)).sum())

    low, high = FACTORS
    if remainder(low) <= 0:
        return 0.0
    if remainder(high) >= 0:
        return high
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if remainder(middle) > 0 else (low, middle)
    return float(np.sqrt(low * high))


def _own_shares(total: Floats, common: Floats) -> Floats:
    """Draw the share of each label from the common one to its own, by the variance between labels and its error."""
    count, score, square = _means(total)
    gap = score[YES] - score[NO]
    sure = (count >= MIN_OF_LABEL).all(axis=0) & (gap > 0)
    if not sure.any():
        return common
    variance, part = np.maximum(square - score**2, 0), common
    error = variance[UNKNOWN] / np.maximum(count[UNKNOWN], 1) + (1 - part) ** 2 * variance[NO] / np.maximum(
        count[NO], 1
    )
    error += part**2 * variance[YES] / np.maximum(count[YES], 1)
    error = np.where(sure, error, 1) / np.where(sure, gap, 1) ** 2 + 1e-12
    separate = np.clip((score[UNKNOWN] - score[NO]) / np.where(sure, gap, 1), 0, 1)
    between = float((((separate - common) ** 2 - error) / error)[sure].sum() / (1 / error)[sure].sum())
    return np.where(sure, common + max(between, 0) / (max(between, 0) + error) * (separate - common), common)


def _compute_weights(total: Floats, kind: Kind, p: float = float("nan")) -> Missingness:
    yes, no, unknown = total[..., 0]
    usable = _usable(total)
    hidden = _own_shares(total, _shares(total, _factor(total))) * unknown
    of_yes = np.where(usable, (yes + hidden) / np.maximum(yes, 1), 1.0)
    of_no = np.where(usable, (no + unknown - hidden) / np.maximum(no, 1), 1.0)
    yes_known, no_known = (
        float(known[usable].sum() / max((weight * known)[usable].sum(), 1))
        for known, weight in ((yes, of_yes), (no, of_no))
    )
    return Missingness(kind, p, of_yes, of_no, hidden, yes_known, no_known)


def _log_rates(total: Floats) -> float:
    result = _compute_weights(total, "by-answer")
    return float(np.log(result.yes_known / result.no_known))
