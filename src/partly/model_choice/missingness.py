"""Test whether entries are missing at random, and weigh known entries where yes and no are known at different rates.

Suppose that, within a label, a yes is known with one chance and a no with another, whatever the item looks like. The
scores of unknown entries are then a mixture of those of known yes and known no, and the share w of yes among unknown
entries follows from three means (the moment version of label-shift correction: Z. Lipton, Y.-X. Wang, A. Smola.
Detecting and Correcting for Label Shift with Black Box Predictors. ICML 2018):

    mean(unknown) = w * mean(yes) + (1 - w) * mean(no)

- If entries are missing at random, w equals the share of yes among known entries, so known and unknown entries have
  the same mean score. The test compares these means over all labels together, with a jackknife over items.
- If the test rejects, one factor for all labels multiplies the odds of yes among known entries to give those among
  unknown ones. Empirical Bayes then moves each label towards its own w, the further the better its entries determine
  it. A known yes stands for (known + hidden yes) / known yes entries, and a known no likewise.
- The mixture must also fit the mean of the squared score. If it does not, something else decides what is known (hard
  negatives, easy items), and known entries cannot be weighted.

Any score that is higher for yes will do, calibrated or not. The test needs only sums by label and group of items, so
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

BLOCK_ITEMS = 4096  # added to the sums at a time
GROUPS = 20  # of items, for the jackknife
SIGNIFICANCE_LEVEL = 0.01  # of rejecting "missing at random" where it holds
MISFIT_RISK = 0.002  # of rejecting the mixture where it holds; small, because scores are then withheld
MIN_ITEMS = 2 * GROUPS
MIN_ENTRIES = 20  # of each kind over all labels, for a test
MIN_OF_LABEL = 5  # entries of each kind, for a label to have its own share
MAX_ERROR = 0.4  # standard error of the log ratio of the rates at which yes and no are known, for a correction
FACTOR_BOUNDS = (1e-9, 1e9)  # of the search for the factor of the odds


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
        """Weights of known yes and known no; None unless the kind is "by-answer"."""
        if self.kind != "by-answer" or self.yes_weight is None or self.no_weight is None:
            return None
        return self.yes_weight, self.no_weight

    @property
    def biased(self) -> bool:
        """True if unweighted scores on known entries would be misleading."""
        return self.kind == "by-answer" or self.withheld

    @property
    def withheld(self) -> bool:
        """True if weights cannot correct the scores either."""
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

    def pass_through(self, parts: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the blocks unchanged, each with its rows, and add them to the sums."""
        positions = np.arange(len(self.labels))
        for rows, block in parts:
            if self.testable:
                self.add(positions[rows], block)
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
    """Test entries by out-of-fold scores [N, L], logits or probabilities."""
    sums, array = EntrySums(labels), np.asarray(scores)
    blocks = (slice(start, min(start + BLOCK_ITEMS, len(labels))) for start in range(0, len(labels), BLOCK_ITEMS))
    for _ in sums.pass_through((rows, array[rows]) for rows in blocks):
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
    p = _p_value(_score_difference, sums)
    if not p < risk:
        return Missingness("untested" if np.isnan(p) else "at-random", p)
    misfit = 2 * np.nanmin([1.0, _p_value(_excess_score, sums), _p_value(_excess_square, sums)])
    result = _compute_weights(total, "unexplained" if misfit < MISFIT_RISK else "by-answer", p)
    unsure = result.kind == "by-answer" and not _jackknife_error(_log_rate_ratio, sums) <= MAX_ERROR
    return replace(result, kind="uncertain") if unsure else result


def _jackknife_error(statistic: Callable[[Floats], float], sums: Floats) -> float:
    """Return the standard error of a statistic of the sums over all items, by a jackknife over groups of them."""
    total = sums.sum(axis=1)
    values = [statistic(total - sums[:, group]) for group in range(GROUPS)]
    return float(np.sqrt((GROUPS - 1) * np.var(values)))


def _p_value(statistic: Callable[[Floats], float], sums: Floats) -> float:
    """Return the two-sided p-value of a statistic that is 0 under the hypothesis; NaN if it never varies."""
    value, error = statistic(sums.sum(axis=1)), _jackknife_error(statistic, sums)
    if not error > 1e-9 * max(abs(value), 1e-9):
        return float("nan")
    return float(2 * stdtr(GROUPS - 1, -abs(value / error)))


def _usable(total: Floats) -> npt.NDArray[np.bool_]:
    """Return a mask of the labels with entries of each kind, [L]."""
    return np.asarray((total[..., 0] > 0).all(axis=0))


def _means(total: Floats) -> tuple[Floats, Floats, Floats]:
    """Return count, mean score and mean squared score, each [3 kinds, L]; 0 where there are no entries."""
    count = total[..., 0]
    score, square = (total[..., k] / np.maximum(count, 1) for k in (1, 2))
    return count, score, square


def _precision(total: Floats) -> Floats:
    """Return a weight for each label, [L]: the inverse variance of mean(unknown) - mean(known), up to a factor."""
    yes, no, unknown = total[..., 0]
    return np.where(_usable(total), (yes + no) * unknown / np.maximum(yes + no + unknown, 1), 0.0)


def _score_difference(total: Floats) -> float:
    """Return the mean score of unknown entries less that of known ones, as a weighted sum over labels."""
    (yes, no, _), score, _ = _means(total)
    known = (yes * score[YES] + no * score[NO]) / np.maximum(yes + no, 1)
    return float((_precision(total) * (score[UNKNOWN] - known)).sum())


def _excess_score(total: Floats) -> float:
    """Return the excess score of unknown entries over the mixture; not 0 if no share from 0 to 1 fits."""
    return float((_precision(total) * _gap(total, _means(total)[1])).sum())


def _excess_square(total: Floats) -> float:
    """Return the excess squared score of unknown entries over the mixture."""
    return float((_precision(total) * _gap(total, _means(total)[2])).sum())


def _gap(total: Floats, moment: Floats) -> Floats:
    """Return a moment [3 kinds, L] of unknown entries less that of the fitted mixture, [L]."""
    shares = _shares(total, _fit_factor(total))
    return np.asarray(moment[UNKNOWN] - shares * moment[YES] - (1 - shares) * moment[NO])


def _shares(total: Floats, factor: float) -> Floats:
    """Return the share of yes among unknown entries, [L]: its odds are those among known entries times the factor."""
    yes, no = total[YES, :, 0], total[NO, :, 0]
    return np.divide(yes * factor, no + yes * factor, out=np.zeros_like(yes), where=(yes > 0) & (no > 0))


def _fit_factor(total: Floats) -> float:
    """Find, by bisection, the factor for which the mixture has the mean score of unknown entries."""
    score, weight = _means(total)[1], _precision(total)
    wanted, per_share = weight * (score[UNKNOWN] - score[NO]), weight * (score[YES] - score[NO])

    def remainder(factor: float) -> float:
        return float((wanted - per_share * _shares(total, factor)).sum())

    low, high = FACTOR_BOUNDS
    if remainder(low) <= 0:
        return 0.0
    if remainder(high) >= 0:
        return high
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if remainder(middle) > 0 else (low, middle)
    return float(np.sqrt(low * high))


def _shrink_shares(total: Floats, common: Floats) -> Floats:
    """Return the shares of labels, shrunk to the common ones: the variance between labels against the error of each."""
    count, score, square = _means(total)
    gap = score[YES] - score[NO]
    reliable = (count >= MIN_OF_LABEL).all(axis=0) & (gap > 0)
    if not reliable.any():
        return common
    variance, size = np.maximum(square - score**2, 0), np.maximum(count, 1)
    error = variance[UNKNOWN] / size[UNKNOWN] + (1 - common) ** 2 * variance[NO] / size[NO]
    error += common**2 * variance[YES] / size[YES]
    error = np.where(reliable, error, 1) / np.where(reliable, gap, 1) ** 2 + 1e-12
    separate = np.clip((score[UNKNOWN] - score[NO]) / np.where(reliable, gap, 1), 0, 1)
    between = float((((separate - common) ** 2 - error) / error)[reliable].sum() / (1 / error)[reliable].sum())
    return np.where(reliable, common + max(between, 0) / (max(between, 0) + error) * (separate - common), common)


def _compute_weights(total: Floats, kind: Kind, p: float = float("nan")) -> Missingness:
    yes, no, unknown = total[..., 0]
    usable = _usable(total)
    hidden = _shrink_shares(total, _shares(total, _fit_factor(total))) * unknown
    yes_weight = np.where(usable, (yes + hidden) / np.maximum(yes, 1), 1.0)
    no_weight = np.where(usable, (no + unknown - hidden) / np.maximum(no, 1), 1.0)
    yes_known, no_known = (
        float(known[usable].sum() / max((weight * known)[usable].sum(), 1))
        for known, weight in ((yes, yes_weight), (no, no_weight))
    )
    return Missingness(kind, p, yes_weight, no_weight, hidden, yes_known, no_known)


def _log_rate_ratio(total: Floats) -> float:
    """Return the log ratio of the rates at which yes and no are known."""
    result = _compute_weights(total, "by-answer")
    return float(np.log(result.yes_known / result.no_known))
