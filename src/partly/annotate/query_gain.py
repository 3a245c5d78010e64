"""What choosing questions is worth: how many chosen answers bring what random ones bring.

The random arm is a fair sample of the entries that were unknown, so it is what both are judged on, by the squared error
of a model's probabilities, which a few wrong answers do not drown. The random answers are split in two halves, by item,
and the chosen ones, in the order in which they were given, in two as well. One half of the random ones teaches a model,
the other half judges it, beside models that learn from a half of the first chosen ones, a quarter as many, half as
many, and as many; nobody is judged by who has seen the item. Then the halves change places. So it is measured what half
of the random answers bring.

It is done again and again with other halves. What two halves that change places differ by says how much luck there
is in which questions were asked, in what was answered, and in who judges: for means it is exact (a jackknife that
leaves out a half), for all else too much rather than too little. That gives an interval to each difference, and where
it leaves out zero one arm is ahead for certain. Choosing saves at least what can be left out of the chosen answers so
that they still are ahead for certain, and at most what can be left out so that they are not behind for certain.

It says when choosing does not win, and when nobody can tell yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t

from partly.labels import Labels

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Learn = Callable[[Labels], Callable[[Positions], npt.NDArray[Any]]]  # labels -> (rows -> probabilities [n, L])
LEAST = 20  # random answers, before anything is said
PAIRS = 10  # of halves
SIZES = (0.25, 0.5, 1.0)  # of the number of random answers that a model learns from
CERTAIN = 0.975  # at either end
FLOOR = 1e-3  # of a probability in a log loss: one bold mistake is not to decide


@dataclass(frozen=True)
class Given:
    """Answers in the order in which they were given: entries [n], z +1 yes or -1 no."""

    rows: Positions
    columns: Positions
    z: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Given:
        return Given(self.rows[index], self.columns[index], self.z[index])

    def told(self, labels: Labels) -> Labels:
        return labels.with_entries(self.rows, self.columns, self.z)


@dataclass(frozen=True)
class Worth:
    """saved: of the random answers, the share that choosing makes needless, with its interval. NaN where there are too
    few answers. An end of the interval that nobody can tell is -inf, or 1; both are -inf where choosing loses."""

    random: int  # answers
    chosen: int
    saved: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def words(self) -> str:
        if self.low > 0:
            ends = "at least " if self.saved >= 1 - SIZES[0] else ""
            return (
                f"100 random answers bring what about {100 * (1 - self.saved):.0f} chosen ones bring: {ends}"
                f"{100 * self.saved:.0f} % of the answers saved "
                f"(95 % interval {100 * self.low:.0f} % to {100 * self.high:.0f} %)."
            )
        arms = f"{self.random} random and {self.chosen} chosen answers"
        if self.high <= 0:
            return f"Choosing does not win: as many random answers teach a model more ({arms}, 95 % certain)."
        if math.isnan(self.saved):
            needs = f"it takes {LEAST} random ones and as many chosen ones"
            return f"Too early to say what choosing is worth: {arms}; {needs}."
        return f"Too early to say whether choosing wins: {arms} do not tell yet."

    def plain(self) -> dict[str, Any]:
        """For JSON, which has neither NaN nor infinity."""
        numbers = {name: part if math.isfinite(part) else None for name, part in asdict(self).items()}
        return numbers | {"words": self.words}


def worth(given: Labels, random: Given, chosen: Given, learn: Learn, seed: int) -> Worth:
    """given: what was known before anybody was asked. chosen: in the order of the answers."""
    if len(random) < LEAST or len(chosen) < len(random):
        return Worth(len(random), len(chosen))
    rng = np.random.default_rng(seed)
    ahead = np.array([_ahead(given, random, chosen, learn, rng) for _ in range(PAIRS)])  # [pairs, 2, K]
    luck = np.sqrt(np.mean(((ahead[:, 0] - ahead[:, 1]) / 2) ** 2, axis=0))
    return Worth(len(random), len(chosen), *saved(ahead.mean(axis=(0, 1)), t.ppf(CERTAIN, PAIRS) * luck))


def saved(ahead: Floats, error: Floats) -> tuple[float, float, float]:
    """The share of answers that is saved, and its interval. ahead: by how much so many chosen answers are, [K]. More
    answers should be no worse, so what is certain of a number must be certain of all greater ones, and where it is
    certainly behind, of all smaller ones."""
    places, most = np.log(SIZES), np.maximum.accumulate

    def least(rising: Floats) -> Floats:
        return -most(-rising[::-1])[::-1]

    here = np.interp(0, (most(ahead) + least(ahead)) / 2, places)
    low = np.interp(0, least(ahead - error), places, right=math.inf)
    high = np.interp(0, most(ahead + error), places, left=-math.inf, right=math.inf)
    found = 1 - np.exp([here, low, high])
    return float(found[0]), float(found[1]), float(found[2])


def _ahead(given: Labels, random: Given, chosen: Given, learn: Learn, rng: np.random.Generator) -> Floats:
    """By how much lower the error is after so many chosen answers than after the random ones, [2, K]: by two halves,
    and when they have changed places."""
    items, first = np.unique(random.rows), rng.random(len(chosen))
    half = np.isin(random.rows, rng.permutation(items)[: len(items) // 2])
    found = []
    for judging, order in ((half, first), (~half, -first)):
        judges, teaching = random[judging], random[~judging]
        able = np.flatnonzero(~np.isin(chosen.rows, judges.rows))
        by_random = _error(learn(teaching.told(given)), judges)
        counts = [round(size * len(teaching)) for size in SIZES]
        drawn = [able[: 2 * count][np.argsort(order[able[: 2 * count]])[:count]] for count in counts]
        found.append([by_random - _error(learn(chosen[np.sort(some)].told(given)), judges) for some in drawn])
    return np.array(found)


def _error(predict: Callable[[Positions], npt.NDArray[Any]], answers: Given) -> float:
    p = np.asarray(predict(answers.rows), np.float64)[np.arange(len(answers)), answers.columns]
    return float(np.mean((p - (answers.z == 1)) ** 2))
