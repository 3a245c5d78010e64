"""Estimates from an audit: hidden yes, prevalence, and recall and F1 of what is filled in as yes.

Outside of the zone of yes, the probabilities of the model predict the number of yes, and the pilot corrects them
(prediction-powered inference). Inside, the share of right answers counts. Both samples are independent. Intervals are
normal approximations of 95 %: they inform, and certify nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores
from partly.completion.pilot import Pilot

QUANTILE = 1.96  # of the normal distribution, for 95 % intervals


@dataclass(frozen=True)
class Estimate:
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, error: float, most: float) -> Estimate:
        """Return the interval of an estimate with this standard error, cut to [0, most]."""
        low, center, high = np.clip([value - QUANTILE * error, value, value + QUANTILE * error], 0, most).tolist()
        return cls(center, low, high)


@dataclass(frozen=True)
class Estimates:
    """Number of yes among the entries without an answer, share of yes among all entries, recall and F1 of yes.

    Recall and F1 are None where nothing is filled in as yes.
    """

    hidden_yes: Estimate
    prevalence: Estimate
    recall: Estimate | None
    f1: Estimate | None

    @property
    def words(self) -> str:
        """One sentence with all estimates."""
        hidden = f"{self.hidden_yes.value:,.0f} ({self.hidden_yes.low:,.0f} to {self.hidden_yes.high:,.0f})"
        phrases = [f"hidden yes {hidden}", f"prevalence {_percent(self.prevalence)}"]
        phrases += [f"{name} {_percent(share)}" for name, share in (("recall", self.recall), ("F1", self.f1)) if share]
        return f"Estimated from the answers, with 95 % intervals: {', '.join(phrases)}."


def estimate(entries: EntryScores, pilot: Pilot, answers: npt.NDArray[np.int8], yes: ZoneDecision) -> Estimates:
    """Estimate from a complete pilot and the answers in the zone that is filled in as yes."""
    usable = entries.candidates & entries.fillable
    outside = usable if yes.threshold is None else usable & (entries.chance < yes.threshold)
    predicted = float(entries.chance[outside].sum())
    total, outside_error = pilot.estimate_total(predicted, outside[pilot.rows, pilot.columns], answers)
    rest = max(total - int((answers[outside] == 1).sum()), 0.0)
    right, right_error = _count_right(yes)
    hidden, unanswered = rest + right, int((usable & (answers == 0)).sum())
    error = math.hypot(outside_error, right_error)
    known = entries.observed[:, entries.fillable]
    known_yes = int((known == 1).sum() + (answers[usable] == 1).sum())
    if entries.implied is not None:
        known_yes += int((entries.implied[:, entries.fillable] == 1).sum())
    recall: Estimate | None = None
    f1: Estimate | None = None
    if yes.filled and hidden:
        slopes = rest / hidden**2, right / hidden**2
        recall = Estimate.of(right / hidden, math.hypot(slopes[0] * right_error, slopes[1] * outside_error), 1)
        both = yes.filled + hidden
        slopes = 2 * (yes.filled + rest) / both**2, 2 * right / both**2
        f1 = Estimate.of(2 * right / both, math.hypot(slopes[0] * right_error, slopes[1] * outside_error), 1)
    prevalence = Estimate.of((known_yes + hidden) / max(known.size, 1), error / max(known.size, 1), 1)
    return Estimates(Estimate.of(hidden, error, unanswered), prevalence, recall, f1)


def _count_right(yes: ZoneDecision) -> tuple[float, float]:
    """Return the estimated number of right entries among those filled in as yes, and its standard error."""
    if not yes.filled or not yes.known:
        return 0.0, 0.0
    share = (yes.errors + 0.5) / (yes.known + 1)  # for the error alone, which would be 0 without a wrong answer
    return yes.filled * (1 - yes.errors / yes.known), yes.filled * math.sqrt(share * (1 - share) / yes.known)


def _percent(share: Estimate) -> str:
    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%})"
