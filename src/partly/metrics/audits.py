"""Metrics of the whole matrix from a random audit: answers to n entries drawn at random among the unknown ones.

The estimates are prediction-powered (A. Angelopoulos, S. Bates, C. Fannjiang, M. Jordan, T. Zrnic. Prediction-Powered
Inference. Science 2023; with the tuned weight of PPI++, 2023): probabilities p of all unknown entries give a first
estimate, and the audited ones correct it. For M unknown entries U and the audited ones S:

    number of yes      B = lambda * sum over U of p + M * mean over S of (y - lambda * p)
    number of hits     A = the same formula, with predicted * y and predicted * p
    lambda = cov(y, p) / var(p) on S

Known entries are added unchanged. precision = A / predicted, recall = A / B, F1 = 2 A / (predicted + B). Only the
draw of the audit is random, so the estimates are consistent whether or not p is right; a good p makes them more
precise. Intervals use the residuals of the audited entries (delta method, finite population, Student's t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from partly.errors import DataError, listing
from partly.labels import Labels, as_labels
from partly.metrics.entry_counts import EntryCounts
from partly.metrics.intervals import UNDEFINED, Interval, interval_from_error, standard_error
from partly.metrics.validation import Floats

MIN_ANSWERS = 20
MIN_YES = 5  # of the audit, below which recall and F1 are withheld
SIGNIFICANCE_LEVEL = 0.001  # of rejecting an audit that is random


@dataclass(frozen=True, eq=False)
class AuditSample:
    """Audited entries: their answers, whether they are predicted, and their probabilities, [n] each."""

    yes: Floats
    predicted: Floats
    probability: Floats


def match_audit(audit: Any, labels: Labels) -> Labels:
    """Return the answers of an audit in the order of the labels: items by id and labels by name, if both have them.

    Items and labels without answers may be missing.
    """
    answers = as_labels(audit, "audit")
    rows = _find_positions(answers.ids, labels.ids, "items")
    columns = _find_positions(answers.names, labels.names, "labels")
    if rows is None and columns is None:
        return answers
    row, column, value = answers.entries()
    row, column = row if rows is None else rows[row], column if columns is None else columns[column]
    names = answers.names if columns is None else labels.names
    items = len(answers) if rows is None else len(labels)
    return Labels.from_codes(row, column, value, names, None, items)


def _find_positions(own: tuple[str, ...], wanted: tuple[str, ...], what: str) -> npt.NDArray[np.int64] | None:
    """Return the position of each name among the wanted ones; None where position counts."""
    if own == wanted or any(names == tuple(map(str, range(len(names)))) for names in (own, wanted)):
        return None
    place = {name: i for i, name in enumerate(wanted)}
    strange = [name for name in own if name not in place]
    if strange:
        problem = f"audit: {len(strange)} of its {len(own)} {what} are not among those of the labels"
        raise DataError(problem + listing(map(repr, strange), len(strange)))
    return np.array([place[name] for name in own], np.int64)


def entries_of_audit(audit: Labels, labels: Labels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, columns and answers of the audit whose entries are unknown in the labels."""
    if audit.shape != labels.shape:
        raise DataError(f"The audit has the shape {audit.shape} and the labels {labels.shape}; they must be equal.")
    rows, columns, answers = audit.entries()
    unknown = labels.rows(rows)[np.arange(len(rows)), columns] == 0
    if unknown.sum() < MIN_ANSWERS:
        raise DataError(
            f"The audit has {int(unknown.sum())} answers to entries that are unknown in the labels; {MIN_ANSWERS} or "
            "more are needed. Draw unknown entries at random (partly query --query random), and keep their answers "
            "apart from the labels."
        )
    return rows[unknown], columns[unknown], answers[unknown]


def check_randomness(sample: AuditSample, counts: EntryCounts) -> str | None:
    """Return why the audit cannot be a random draw from the unknown entries; None if no test rejects it."""
    unknown, n = float(counts.unknown.sum()), len(sample.yes)
    share = float(counts.predicted_unknown.sum()) / unknown
    expected = float(counts.score.sum()) / unknown
    tests = (
        ("predicted yes", sample.predicted.mean(), share, math.sqrt(share * (1 - share) / n)),
        ("mean score", sample.probability.mean(), expected, sample.probability.std() / math.sqrt(n)),
    )
    for name, audited, whole, error in tests:
        if error > 0 and 2 * ndtr(-abs(audited - whole) / error) < SIGNIFICANCE_LEVEL / len(tests):
            return (
                f"The audit is not a random draw from the unknown entries: {name} is {audited:.3g} in the audit and "
                f"{whole:.3g} in all unknown entries."
            )
    return None


def estimate_from_audit(
    sample: AuditSample, counts: EntryCounts, confidence: float
) -> dict[str, tuple[float, Interval]]:
    """Return pooled precision, recall, F1 and prevalence of the whole matrix, with their intervals."""
    unknown, entries = float(counts.unknown.sum()), counts.items * len(counts.yes)
    slope = _slope(sample)
    totals = slope * np.array([counts.predicted_score.sum(), counts.score.sum()])
    residuals = np.stack([sample.predicted, np.ones(len(sample.yes))]) * (sample.yes - slope * sample.probability)
    predicted = float(counts.predicted.sum())
    hits, yes = totals + unknown * residuals.mean(axis=1) + [counts.hits.sum(), counts.yes.sum()]
    hits = float(np.clip(hits, counts.hits.sum(), predicted))
    yes = max(float(yes), hits, float(counts.yes.sum()))
    per_entry = residuals * unknown  # of hits and of yes
    ratios: dict[str, tuple[float, float, Floats, Floats]] = {
        "OP": (hits, predicted, per_entry[0], 0.0 * per_entry[1]),
        "OR": (hits, yes, per_entry[0], per_entry[1]),
        "OF1": (2 * hits, predicted + yes, 2 * per_entry[0], per_entry[1]),
        "prevalence": (yes, entries, per_entry[1], 0.0 * per_entry[1]),
    }
    if sample.yes.sum() < MIN_YES:
        del ratios["OR"], ratios["OF1"]
    rest = math.sqrt(1 - len(sample.yes) / unknown)  # share of the population that is not audited
    return {name: _ratio(*parts, rest, confidence) for name, parts in ratios.items()}


def _ratio(
    numerator: float, denominator: float, change: Floats, change_below: Floats, rest: float, confidence: float
) -> tuple[float, Interval]:
    """Return a ratio of totals and its interval.

    change, change_below: contribution of each audited entry to the totals, times the population.
    """
    if denominator <= 0:
        return math.nan, UNDEFINED
    value = numerator / denominator
    influence = (change - value * change_below) / denominator
    error, freedom = standard_error((influence - influence.mean()) / len(influence))
    if error == 0:
        return value, UNDEFINED
    return value, interval_from_error(value, error * rest, freedom, confidence)


def _slope(sample: AuditSample) -> float:
    """Return the weight of the probabilities that makes the estimate of the number of yes most precise."""
    variance = float(sample.probability.var())
    if variance == 0:
        return 0.0
    covariance = float(np.mean((sample.probability - sample.probability.mean()) * sample.yes))
    return float(np.clip(covariance / variance, 0, 1))
