"""From which score on a label is called yes: for the best F1, for a precision or a recall, or for the share of yes.

All is counted on held-out entries, each list of called entries being a top of the list of scores. That a precision is
reached there is no promise for new items: a threshold that is chosen among many is a little lucky.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.calibration.judged import CalibrationSample, Floats
from partly.errors import SettingError, did_you_mean

Counts = npt.NDArray[np.int64]
KINDS = ("f1", "precision", "recall", "share")
NEVER = np.inf
ROUNDING = 1e-3  # of a logit that was a probability in float32


@dataclass(frozen=True)
class Goal:
    """What a threshold is for. target: of precision and recall."""

    kind: str
    target: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}:{self.target:g}" if self.target else self.kind


def read_goal(text: Any) -> Goal:
    """`f1`, `share`, `precision:0.9` or `recall:0.9`."""
    kind, _, target = text.partition(":") if isinstance(text, str) else ("", "", "")
    there = "thresholds are for 'f1', 'precision:0.9', 'recall:0.9' or 'share'"
    if kind not in KINDS:
        raise SettingError(f"thresholds = {text!r}: {there}.{did_you_mean(kind, KINDS) if kind else ''}")
    if kind in ("f1", "share"):
        if target:
            raise SettingError(f"thresholds = {text!r}: {kind} has no target; {there}.")
        return Goal(kind)
    try:
        value = float(target)
    except ValueError:
        value = np.nan
    if not 0 < value <= 1:
        raise SettingError(f"thresholds = {text!r}: {kind} needs a number above 0 and up to 1, as in {kind}:0.9.")
    return Goal(kind, value)


def choose_threshold(of: CalibrationSample, goal: Goal) -> float:
    """The score from which on to call yes, by what a label is judged by; NEVER where no list has the precision."""
    ends, hits, called = _tops(of)
    if of.no_weight != 1:
        called = hits + of.no_weight * (called - hits)
    true = np.minimum(hits / of.chance, called)
    recall, precision = hits / len(of.yes), true / called
    if goal.kind == "precision":
        worth = np.where(precision >= goal.target, recall, -1.0)
    elif goal.kind == "recall":
        worth = np.where(recall >= goal.target, precision, -1.0)
    else:
        worth = 2 * true / (called + of.total)
    best = int(np.argmax(worth))  # of equals the shortest list
    return NEVER if worth[best] < 0 else _below(ends, best)


def choose_threshold_for_share(scores: Floats, share: float) -> float:
    """The score from which on about this share of all items is called yes."""
    ends, sizes = np.unique(scores, return_counts=True)
    ends, called = ends[::-1].astype(np.float64), np.cumsum(sizes[::-1])
    wanted = share * len(scores)
    best = int(np.argmin(np.abs(called - wanted)))
    return NEVER if wanted < abs(called[best] - wanted) else _below(ends, best)


def _tops(of: CalibrationSample) -> tuple[Floats, Counts, Counts]:
    """Of each list of called entries, the shortest first: its lowest score, its known yes, and how many it calls."""
    scores = np.concatenate([of.yes, of.rest]).astype(np.float64)
    ends = np.unique(scores)[::-1]
    order_yes, order_all = np.sort(of.yes), np.sort(scores)
    hits, called = (len(part) - np.searchsorted(part, ends).astype(np.int64) for part in (order_yes, order_all))
    return ends, hits, called


def _below(ends: Floats, at: int) -> float:
    """Half way to the next lower score, so that no rounding changes who is called."""
    return float((ends[at] + ends[at + 1]) / 2 if at + 1 < len(ends) else ends[at] - ROUNDING)
