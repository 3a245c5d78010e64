"""Choose the score above which a label is predicted: for F1, a precision, a recall, or the estimated share of yes.

Everything is counted on held-out entries. A precision reached there is not guaranteed on new items: choosing the best
of many thresholds is optimistic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.calibration.samples import CalibrationSample, Floats
from partly.errors import SettingError, did_you_mean

Counts = npt.NDArray[np.int64]
GOALS = ("f1", "precision", "recall", "share")
NEVER_YES = np.inf
ROUNDING = 1e-3  # of a logit that was a probability in float32


@dataclass(frozen=True)
class Goal:
    """Objective of a threshold. target: of precision and recall."""

    kind: str
    target: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}:{self.target:g}" if self.target else self.kind


def parse_goal(text: Any) -> Goal:
    """Parse `f1`, `share`, `precision:0.9` or `recall:0.9`."""
    kind, _, target = text.partition(":") if isinstance(text, str) else ("", "", "")
    choices = "choose 'f1', 'precision:0.9', 'recall:0.9' or 'share'"
    if kind not in GOALS:
        raise SettingError(f"thresholds = {text!r}: {choices}.{did_you_mean(kind, GOALS) if kind else ''}")
    if kind in ("f1", "share"):
        if target:
            raise SettingError(f"thresholds = {text!r}: {kind} has no target; {choices}.")
        return Goal(kind)
    try:
        value = float(target)
    except ValueError:
        value = np.nan
    if not 0 < value <= 1:
        raise SettingError(f"thresholds = {text!r}: {kind} needs a number above 0 and up to 1, as in {kind}:0.9.")
    return Goal(kind, value)


def choose_threshold(sample: CalibrationSample, goal: Goal) -> float:
    """Return the best threshold for the goal; NEVER where no threshold reaches it."""
    lowest, hits, predicted = _count_prefixes(sample)
    if sample.no_weight != 1:
        predicted = hits + sample.no_weight * (predicted - hits)
    true = np.minimum(hits / sample.chance, predicted)
    recall, precision = hits / len(sample.yes), true / predicted
    if goal.kind == "precision":
        value = np.where(precision >= goal.target, recall, -1.0)
    elif goal.kind == "recall":
        value = np.where(recall >= goal.target, precision, -1.0)
    else:
        value = 2 * true / (predicted + sample.total)
    best = int(np.argmax(value))  # the highest threshold among equals
    return NEVER_YES if value[best] < 0 else _midpoint_below(lowest, best)


def choose_threshold_for_share(scores: Floats, share: float) -> float:
    """Return the threshold above which about this share of all items lies."""
    lowest, sizes = np.unique(scores, return_counts=True)
    lowest, predicted = lowest[::-1].astype(np.float64), np.cumsum(sizes[::-1])
    target = share * len(scores)
    best = int(np.argmin(np.abs(predicted - target)))
    return NEVER_YES if target < abs(predicted[best] - target) else _midpoint_below(lowest, best)


def _count_prefixes(sample: CalibrationSample) -> tuple[Floats, Counts, Counts]:
    """For each prefix of the ranking, the shortest first: its lowest score, its known yes, and its size."""
    scores = np.concatenate([sample.yes, sample.rest]).astype(np.float64)
    lowest = np.unique(scores)[::-1]
    yes, every = np.sort(sample.yes), np.sort(scores)
    hits, predicted = (len(part) - np.searchsorted(part, lowest).astype(np.int64) for part in (yes, every))
    return lowest, hits, predicted


def _midpoint_below(scores: Floats, at: int) -> float:
    """Return the midpoint to the next lower score, so that rounding changes no prediction."""
    return float((scores[at] + scores[at + 1]) / 2 if at + 1 < len(scores) else scores[at] - ROUNDING)
