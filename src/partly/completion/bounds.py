"""How many wrong entries there can be in a zone, by those that were found in a sample of it. docs/completion.md has the
theorems; nothing here knows of labels or models.

- `wrong_p`: the sample is drawn without replacement, entry by entry: exact, by the hypergeometric distribution, of which
  Clopper and Pearson's binomial bound is the limit for zones without end.
- `log_evidence`: sampled entries come in clusters (of an item) that are independent of one another; a mixture of bets.
- `Race`: the sample is drawn one by one and may be looked at after each draw; a bet that knows what is left.
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


def wrong_p(errors: npt.ArrayLike, sample: npt.ArrayLike, zone: npt.ArrayLike, wrong: npt.ArrayLike) -> Any:
    """The chance of at most so many errors in a sample, drawn without replacement from a zone with `wrong` wrong
    entries or more. It is small where there are fewer."""
    return hypergeom.cdf(errors, zone, np.minimum(wrong, zone), sample)


def most_wrong(errors: int, sample: int, zone: int, risk: float) -> int:
    """The upper bound of wrong entries in a zone: the largest number that the sample does not speak against."""
    low, high = errors, zone - sample + errors  # the first is always possible
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if wrong_p(errors, sample, zone, middle) > risk else (low, middle - 1)
    return low


def log_evidence(losses: Floats, largest: float) -> float:
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


@dataclass
class Race:
    """Draws without replacement from a zone of `zone` entries, against the claim that `wrong` or more of it are wrong.
    `evidence` may be looked at after every draw; 1 / risk or more has at most the chance `risk` if the claim is true."""

    zone: int
    wrong: int
    log: float = 0.0
    drawn: int = 0
    errors: int = 0

    def draw(self, error: bool) -> None:
        expected = self._expected()
        stake = STAKE / (1 - expected) if expected < 1 else 0.0
        self.log += math.log1p(stake * (expected - error)) if expected > 0 else -math.inf  # the claim is proved
        self.drawn, self.errors = self.drawn + 1, self.errors + error

    def _expected(self) -> float:
        """The share of errors among what is left, if the claim is just true."""
        return max(self.wrong - self.errors, 0) / max(self.zone - self.drawn, 1)

    def needed(self, risk: float, most: int) -> int | None:
        """Draws without error that would make the evidence enough; None where that takes more than `most`."""
        ahead = Race(self.zone, self.wrong, self.log, self.drawn, self.errors)
        while ahead.log < -math.log(risk):
            if ahead.drawn in (self.zone, self.drawn + most) or ahead.log == -math.inf:
                return None
            ahead.draw(False)
        return ahead.drawn - self.drawn
