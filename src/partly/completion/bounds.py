"""Bounds on the number of wrong entries in a zone, from the errors in a sample of it.

docs/completion.md has the theorems; nothing here depends on labels or models.

- `wrong_p`: precision of filled entries, from known entries drawn without replacement; exact, by the hypergeometric
  distribution. Clopper and Pearson's binomial bound is its limit for infinite zones.
- `p_value_missed`: share of the hidden yes that become no, from known yes drawn without replacement, given bounds on
  the number of hidden yes (`fewest_yes`); exact.
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
STAKE = 0.8  # of a sequential test; optimal if a fifth of the allowed errors occur


def wrong_p(errors: Any, sample: Any, zone: Any, wrong: Any) -> Any:
    """p-value of the claim that a zone has `wrong` wrong entries or more outside the sample; numbers or arrays.

    It is the probability of at most this many errors in a sample drawn without replacement, if the zone has `errors`
    and `wrong` wrong entries. The claim is false for every larger number of errors, so the test is exact.
    """
    return hypergeom.cdf(errors, zone, np.minimum(errors + wrong, zone), sample)


def fewest_yes(known_yes: int, known: int, entries: int, risk: float) -> int:
    """Lower confidence bound for the number of yes among all entries, from known entries drawn without replacement.

    It exceeds the true number with at most probability `risk`.
    """
    low, high = known_yes, entries - (known - known_yes)
    while low < high:  # the probability of so many known yes grows with the number of yes
        middle = (low + high) // 2
        if hypergeom.sf(known_yes - 1, entries, middle, known) > risk:
            high = middle
        else:
            low = middle + 1
    return low


def p_value_missed(
    missed: int, known: int, share: float, hidden: tuple[int, int], implied: tuple[int, int] = (0, 0)
) -> float:
    """Return the p-value of the claim that more than this share of the hidden yes is in the zone of no.

    missed: known yes in the zone, of `known` in all. hidden: smallest and largest possible number of hidden yes; the
    largest p-value over these numbers counts. implied: yes that follow from known entries, in all and in the zone; they
    are neither known by chance nor hidden.
    """
    fewest, most = hidden
    # For each number of missed yes, the p-value is largest for the most hidden yes of which it exceeds the share.
    excess = np.arange(math.floor(share * fewest), math.floor(share * most) + 1) + 1
    hidden_yes = np.minimum(np.ceil(excess / share) - 1, most)
    in_zone = missed + implied[1] + excess
    total = np.maximum(known + implied[0] + hidden_yes, in_zone)
    return float(np.max(hypergeom.cdf(missed, total, in_zone, known))) if most else 0.0


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
    most probability `risk`, at any stopping time. The evidence grows with `wrong`.
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

    def count_needed_draws(self, risk: float, most: int) -> int | None:
        """Return how many draws without error give enough evidence; None if more than `most`."""
        draws = np.arange(self.drawn, min(self.drawn + most, self.zone))
        errors = np.full(len(draws), self.errors)
        gains = _gains(self.zone, self.wrong - errors, draws)
        ahead = np.concatenate([[0.0], np.cumsum(gains)])
        enough = np.flatnonzero(self.log + ahead >= -math.log(risk))
        return int(enough[0]) if len(enough) else None


def _gains(zone: int, left: npt.NDArray[Any], drawn: npt.NDArray[Any]) -> Floats:
    """Log evidence added by a draw without error, if `left` wrong entries are claimed among the rest."""
    share = np.clip(left / np.maximum(zone - drawn, 1), 0, 1 - 1e-9)
    return np.asarray(np.log1p(STAKE * share / (1 - share)))
