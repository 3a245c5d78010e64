"""How many wrong entries there can be in a zone, by those that were found in a sample of it. docs/completion.md has the
theorems; nothing here knows of labels or models.

- `wrong_p`: the sample is drawn without replacement, entry by entry: exact, by the hypergeometric distribution. Clopper
  and Pearson's binomial bound is its limit for zones without end.
- `log_evidence`: sampled entries come in clusters (of an item) that are independent of one another; a mixture of bets.
- `SequentialTest`: the sample is drawn one by one and may be looked at after each draw; a bet that knows what is left.
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

BETS = (0.95, 0.75, 0.5, 0.25, 0.1)  # shares of the largest bet that cannot lose all; each has the same say
STAKE = 0.8  # of a race: right if a fifth of the errors that are allowed are made


def wrong_p(errors: Any, sample: Any, zone: Any, wrong: Any) -> Any:
    """The chance of at most so many errors in a sample, drawn without replacement from a zone with `wrong` wrong
    entries or more: numbers, or arrays of them. It is small where there are fewer."""
    return hypergeom.cdf(errors, zone, np.minimum(wrong, zone), sample)


def log_evidence(losses: npt.NDArray[Any], largest: float) -> float:
    """The log of the evidence that independent losses [K] have a sum below 0 in expectation. If it is not below 0,
    evidence of 1 / risk or more has at most the chance `risk`.

    largest: what no loss can exceed.
    """
    if largest <= 0 or not len(losses):
        return 0.0
    bets = np.array(BETS)[:, None] / largest
    wealth = np.log1p(-bets * losses).sum(axis=1)
    return float(logsumexp(wealth) - math.log(len(BETS)))


def leading(passed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """How many tests pass before the first that fails, down the first axis: fixed-sequence testing."""
    return np.asarray(np.logical_and.accumulate(passed, axis=0).sum(axis=0), np.int64)


@dataclass(frozen=True)
class SequentialTest:
    """Draws without replacement from a zone of `zone` entries, against the claim that `wrong` or more of it are wrong.
    `log`: of the evidence against it, after all draws; it may be looked at after every one. If the claim is true,
    evidence of 1 / risk or more has at most the chance `risk`, whenever one stops."""

    zone: int
    wrong: int
    drawn: int
    errors: int
    log: float

    @classmethod
    def of(cls, errors: npt.NDArray[np.bool_], zone: int, wrong: int) -> SequentialTest:
        """errors: [K] whether each draw was one, in order."""
        before: npt.NDArray[np.int64] = np.cumsum(errors) - errors
        right = _gains(zone, np.asarray(wrong - before), np.arange(len(errors)))
        gains = np.where(errors, math.log1p(-STAKE), right)
        proved = bool(errors.sum() >= wrong)  # then nothing speaks against the claim any more
        return cls(zone, wrong, len(errors), int(errors.sum()), -math.inf if proved else float(gains.sum()))

    def needed(self, risk: float, most: int) -> int | None:
        """Draws without error that would make the evidence enough; None where that takes more than `most`."""
        draws = np.arange(self.drawn, min(self.drawn + most, self.zone))
        gains = _gains(self.zone, np.full(len(draws), self.wrong - self.errors), draws)
        ahead = np.concatenate([[0.0], np.cumsum(gains)])
        enough = np.flatnonzero(self.log + ahead >= -math.log(risk))
        return int(enough[0]) if len(enough) else None


def _gains(zone: int, left: npt.NDArray[Any], drawn: npt.NDArray[Any]) -> Floats:
    """What a draw without error adds to the evidence, if `left` wrong ones are claimed among what is left."""
    share = np.clip(left / np.maximum(zone - drawn, 1), 0, 1 - 1e-9)
    return np.asarray(np.log1p(STAKE * share / (1 - share)))
