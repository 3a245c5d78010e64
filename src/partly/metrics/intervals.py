"""Confidence intervals and paired differences of metrics, from the influence of each item.

Items are the sampling unit. The variance of a metric is the sum of the squared influences of the items (the
infinitesimal jackknife), with Student's t for the effective number of items that carry it. Metrics between 0 and 1 get
their interval on the logit scale. The number of exactly matched items is binomial, so exact_match has the exact
interval of Clopper and Pearson. So have metrics at 0 or 1, with the number of their independent units (`units`). The
labels, their propensities and the thresholds are taken as given.

The intervals are approximate; benchmarks/interval_coverage.py measures them. ECE is biased upwards in small samples,
and its interval does not correct that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import betaincinv, expit, logit, stdtr, stdtrit

from partly.metrics.validation import Floats

Interval = tuple[float, float]
UNBOUNDED = ("coverage_error", "log_loss", "macro_log_loss")
UNDEFINED = (math.nan, math.nan)


def standard_error(influence: Floats) -> tuple[float, float]:
    """Return the standard error and the degrees of freedom that the influences of items imply."""
    carrying = np.count_nonzero(influence)
    squares = float((influence**2).sum())
    if carrying < 2 or squares == 0:
        return 0.0, 1.0
    effective = squares**2 / float((influence**4).sum())  # number of items with equal influence
    return math.sqrt(squares * carrying / (carrying - 1)), max(1.0, effective - 1)


def interval(
    name: str, value: float, influence: Floats, items: int, confidence: float, units: float | None = None
) -> Interval:
    """Return the confidence interval of one metric.

    items : number of items it rests on.
    units : number of independent units it rests on, if these are fewer than the items.
    """
    if math.isnan(value) or items < 2:
        return UNDEFINED
    bounded = name not in UNBOUNDED
    if name == "exact_match":
        return binomial_interval(round(value * items), items, confidence)
    if bounded and not 0 < value < 1:
        return extreme_interval(value, min(items, items if units is None else units), confidence)
    error, freedom = standard_error(influence)
    if error == 0:
        return UNDEFINED
    return interval_from_error(value, error, freedom, confidence, bounded)


def interval_from_error(
    value: float, error: float, freedom: float, confidence: float, bounded: bool = True
) -> Interval:
    """Return the interval of Student's t; of a metric between 0 and 1 (`bounded`) on the logit scale."""
    margin = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    if not bounded:
        return max(0.0, value - margin), value + margin
    if not 0 < value < 1:
        return UNDEFINED
    scale = margin / (value * (1 - value))
    return float(expit(logit(value) - scale)), float(expit(logit(value) + scale))


def jackknife_interval(value: float, others: Sequence[float], confidence: float, bounded: bool = True) -> Interval:
    """Return the interval of a delete-a-group jackknife. others: the metric without each group of items."""
    replicates = np.array(others)
    if math.isnan(value) or np.isnan(replicates).any():
        return UNDEFINED
    error = math.sqrt((len(replicates) - 1) * float(replicates.var()))
    return interval_from_error(value, error, len(replicates) - 1, confidence, bounded) if error > 1e-9 else UNDEFINED


def extreme_interval(value: float, units: float, confidence: float) -> Interval:
    """Return the exact interval of a metric at 0 or 1 that rests on so many independent units."""
    end = float(betaincinv(units, 1, (1 - confidence) / 2)) if units > 0 else 0.0
    return (end, 1.0) if value >= 1 else (0.0, 1 - end)


def binomial_interval(successes: int, trials: int, confidence: float) -> Interval:
    """Return the exact interval of Clopper and Pearson for a proportion."""
    risk = (1 - confidence) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, risk))
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - risk))
    return low, high


def difference(a: Floats, b: Floats, gap: float, confidence: float) -> tuple[Interval, float]:
    """Return the interval and the two-sided p-value of a difference, from both models' influences on the same items."""
    error, freedom = standard_error(a - b)
    if error == 0 or math.isnan(gap):
        return UNDEFINED, math.nan
    margin = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    return (gap - margin, gap + margin), float(2 * stdtr(freedom, -abs(gap) / error))


def holm(p_values: list[float]) -> list[float]:
    """Adjust p-values for several tests (S. Holm. A Simple Sequentially Rejective Multiple Test Procedure. 1979)."""
    tested = sorted((p, i) for i, p in enumerate(p_values) if not math.isnan(p))
    adjusted, largest = [math.nan] * len(p_values), 0.0
    for step, (p, i) in enumerate(tested):
        largest = max(largest, min(1.0, (len(tested) - step) * p))
        adjusted[i] = largest
    return adjusted
