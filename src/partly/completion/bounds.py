"""Bounds on the number of wrong entries in a zone, from the errors in a sample of it.

docs/completion.md has the theorems; nothing here depends on labels or models.

- `wrong_p`: for entries drawn without replacement; exact, by the hypergeometric distribution. Clopper and Pearson's
  binomial bound is its limit for infinite zones.
- `log_evidence`: for clusters of entries (items) that are independent of each other; a mixture of bets.
- `SequentialTest`: for entries drawn one by one, valid at any stopping time; a bet that accounts for what is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from scipy.stats import hypergeom

Floats = npt.NDArray[np.float64]

BETS = (0.95, 0.75, 0.5, 0.25, 0.1)  # shares of the largest bet that cannot lose everything, equally weighted
STAKE = 0.8  # of the sequential test; optimal if a fifth of the allowed errors occur


def wrong_p(errors: Any, sample: Any, zone: Any, wrong: Any) -> Any:
    """p-value of the claim that a zone has `wrong` wrong entries or more; takes numbers or arrays.

    It is the probability of at most this many errors in a sample drawn without replacement.
    """
    return hypergeom.cdf(errors, zone, np.minimum(wrong, zone), sample)


def log_evidence(losses: npt.NDArray[Any], largest: float) -> float:
    """Log evidence (e-value) that independent losses [K] have a negative expected sum.

    If the expected sum is not negative, evidence of 1 / risk or more has at most probability `risk`. largest: upper
    bound of a loss.
    """
    if largest <= 0 or not len(losses):
        return 0.0
    bets = np.array(BETS)[:, None] / largest
    wealth = np.log1p(-bets * losses).sum(axis=1)
    return float(logsumexp(wealth) - math.log(len(BETS)))


def leading(passed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Number of tests that pass before the first failure, along the first axis: fixed-sequence testing."""
    return np.asarray(np.logical_and.accumulate(passed, axis=0).sum(axis=0), np.int64)


@dataclass(frozen=True)
class SequentialTest:
    """Anytime-valid test, by draws without replacement, of the claim that a zone has `wrong` wrong entries or more.

    `log`: log evidence against the claim after all draws. If the claim is true, evidence of 1 / risk or more has at
    most probability `risk`, at any stopping time.
    """

    zone: int
    wrong: int
    drawn: int
    errors: int
    log: float

    @classmethod
    def of(cls, errors: npt.NDArray[np.bool_], zone: int, wrong: int) -> SequentialTest:
        """Test these draws. errors: whether each draw was an error, in order, [K]."""
        before: npt.NDArray[np.int64] = np.cumsum(errors) - errors
        right = _gains(zone, np.asarray(wrong - before), np.arange(len(errors)))
        gains = np.where(errors, math.log1p(-STAKE), right)
        proved = bool(errors.sum() >= wrong)  # the claim is certain
        return cls(zone, wrong, len(errors), int(errors.sum()), -math.inf if proved else float(gains.sum()))

    def needed(self, risk: float, most: int) -> int | None:
        """Number of draws without error that would give enough evidence; None where it is above `most`."""
        draws = np.arange(self.drawn, min(self.drawn + most, self.zone))
        gains = _gains(self.zone, np.full(len(draws), self.wrong - self.errors), draws)
        ahead = np.concatenate([[0.0], np.cumsum(gains)])
        enough = np.flatnonzero(self.log + ahead >= -math.log(risk))
        return int(enough[0]) if len(enough) else None


def _gains(zone: int, left: npt.NDArray[Any], drawn: npt.NDArray[Any]) -> Floats:
    """Log evidence added by a draw without error, if `left` wrong entries are claimed among the rest."""
    share = np.clip(left / np.maximum(zone - drawn, 1), 0, 1 - 1e-9)
    return np.asarray(np.log1p(STAKE * share / (1 - share)))
