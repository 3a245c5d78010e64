"""Exact test of a zone by a planned number of draws without replacement, with a few interim looks.

The test bounds the number of wrong entries in a zone. At each look it compares the errors so far with a limit. The
limits become stricter the earlier the look (O'Brien and Fleming, 1979), so that looks cost little power. They are
as large as the exact probability of a wrong bound permits, which follows from the hypergeometric distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln
from scipy.stats import betabinom, hypergeom, norm

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LOOKS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of all draws
BISECTIONS = 12


@dataclass(frozen=True)
class PlannedTest:
    """Test that at most `allowed` entries of a zone stay wrong after the errors that the draws reveal.

    looks: numbers of draws; limits: largest number of errors with which each look passes, -1 if it cannot pass.
    """

    zone: int
    allowed: int
    looks: tuple[int, ...]
    limits: tuple[int, ...]

    def bound_wrong(self, errors: npt.NDArray[np.bool_]) -> int | None:
        """Return an upper bound for the wrong entries of the zone; None if no look has passed.

        errors: whether each draw was an error, in order. The bound is exceeded with at most the planned risk.
        """
        counts = np.cumsum(errors)
        passed = [
            int(counts[look - 1])
            for look, limit in zip(self.looks, self.limits, strict=True)
            if look <= len(errors) and counts[look - 1] <= limit
        ]
        return min(passed) + self.allowed if passed else None

    def open_looks(self, errors: npt.NDArray[np.bool_]) -> list[int]:
        """Return the looks ahead that these draws still permit to pass."""
        count = int(errors.sum())
        both = zip(self.looks, self.limits, strict=True)
        return [look for look, limit in both if look > len(errors) and limit >= count]


@lru_cache(maxsize=4096)
def plan_test(zone: int, allowed: int, draws: int, risk: float) -> PlannedTest:
    """Return the test with the largest limits whose bound is wrong with at most probability `risk`."""
    looks = np.unique(np.ceil(draws * np.array(LOOKS)).astype(np.int64))
    looks = looks[looks > 0]
    most = count_passing_errors(zone, allowed, draws, risk)
    errors = np.arange(most + 1)
    wrong = np.minimum(errors + allowed + 1, zone)
    p_values = np.stack([hypergeom.cdf(errors, zone, wrong, look) for look in looks])
    pruned = np.sqrt(looks[-1] / looks)

    def limits_at(z: float) -> Counts:
        return np.asarray((p_values <= norm.sf(z * pruned)[:, None]).sum(axis=1) - 1)

    low, high = norm.isf(risk), norm.isf(risk) + 3.0  # the limits at `low` may be too large, those at `high` are not
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if failure_probability(zone, allowed, looks, limits_at(middle)) <= risk:
            high = middle
        else:
            low = middle
    limits = limits_at(high)
    if failure_probability(zone, allowed, looks, limits) > risk:
        limits = np.full(len(looks), -1)
    for k in range(len(looks) - 1, -1, -1):  # the discreteness of errors may leave some risk
        larger = limits + (np.arange(len(looks)) == k)
        if larger[k] <= most and failure_probability(zone, allowed, looks, larger) <= risk:
            limits = larger
    return PlannedTest(zone, allowed, tuple(looks.tolist()), tuple(limits.tolist()))


@lru_cache(maxsize=65536)
def count_passing_errors(zone: int, allowed: int, draws: int, risk: float) -> int:
    """Return the largest number of errors with which a single look after all draws passes; -1 if none does."""
    low, high = -1, draws
    while low < high:
        middle = (low + high + 1) // 2
        if hypergeom.cdf(middle, zone, min(middle + allowed + 1, zone), draws) <= risk:
            low = middle
        else:
            high = middle - 1
    return low


@lru_cache(maxsize=65536)
def pass_probability(limit: int, draws: int, share: float, weight: float) -> float:
    """Return the probability of at most `limit` errors, if their share was estimated from `weight` observations."""
    if limit < 0:
        return 0.0
    return float(betabinom.cdf(limit, draws, weight * share + 0.5, weight * (1 - share) + 0.5))


def failure_probability(zone: int, allowed: int, looks: Counts, limits: Counts) -> float:
    """Return the largest probability, over all numbers of wrong entries, of a bound that is too low.

    With `wrong` entries, a look that passes with e errors bounds them too low only if e < wrong - allowed. For more
    than `allowed` plus the largest limit, this holds for all limits, and passing becomes less probable.
    """
    most = int(limits.max(initial=-1))
    if most < 0:
        return 0.0
    wrong = allowed + 1 + np.arange(min(most, zone - allowed - 1) + 1)
    errors = np.arange(most + 1)
    state = np.zeros((len(wrong), len(errors)))  # probability of so many errors, without a pass so far
    state[:, 0] = 1.0
    failed, before = np.zeros(len(wrong)), 0
    for look, limit in zip(looks.tolist(), limits.tolist(), strict=True):
        left, draws = zone - before, look - before
        bad = np.maximum(wrong[:, None] - errors, 0)[:, :, None]  # among those left, by errors so far
        new = (errors[None, :] - errors[:, None])[None]
        state = np.einsum("we,wef->wf", state, _hypergeometric(new, left, bad, draws))
        passed = errors <= np.minimum(limit, wrong - allowed - 1)[:, None]
        failed += np.where(passed, state, 0.0).sum(axis=1)
        state[passed] = 0.0
        before = look
    return float(failed.max())


def _hypergeometric(count: Counts, size: int, bad: Counts, draws: int) -> Floats:
    """Return the probability of `count` bad entries in so many draws; 0 where that is impossible."""
    possible = (count >= 0) & (count <= bad) & (draws - count <= size - bad) & (count <= draws) & (bad <= size)
    k, m = np.where(possible, count, 0), np.where(possible, bad, 0)
    feasible = np.where(possible, draws - k, 0)
    log = _log_binomial(m, k) + _log_binomial(size - m, feasible) - _log_binomial(np.asarray(size), np.asarray(draws))
    return np.asarray(np.where(possible, np.exp(log), 0.0))


def _log_binomial(n: Counts, k: Counts) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1), np.float64)
