"""What choosing questions is worth: how many chosen answers bring what random ones bring.

The random arm is a fair sample of the entries that were unknown, so it is what both are judged on, by the log loss of a
model's probabilities. A model learns from what was given and the random answers, cross-fitted: each of them is judged
by a model that has not seen any answer about its item. Others learn from what was given and the first chosen answers,
of four numbers around that of the random ones, and of none of the random. Where the losses meet, so many chosen answers
are worth the random ones. Its interval is from a bootstrap over items, the same draw for all models.

It says when choosing does not win, and when nobody can tell yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import Labels

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
Learn = Callable[[Labels], Callable[[Positions], npt.NDArray[Any]]]  # labels -> (rows -> probabilities [n, L])
LEAST = 20  # random answers, before anything is said
FOLDS = 5
SIZES = (0.25, 0.5, 1.0, 2.0)  # of the number of random answers that a model learns from
DRAWS = 1000
FLOOR = 1e-3  # of a probability: one bold mistake is not to decide


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
    """saved: of the random answers, the share that choosing makes needless; below 0 where it needs more. NaN where
    nobody can tell."""

    random: int  # answers
    chosen: int
    saved: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def words(self) -> str:
        if math.isnan(self.saved):
            return (
                f"Too early to say what choosing is worth: {self.random} random and {self.chosen} chosen answers; "
                f"it takes at least {LEAST} random ones, a quarter as many chosen ones, and a model that they have "
                "made better."
            )
        span = f"(95 % interval {self.low:.0%} to {self.high:.0%})"
        if self.low > 0:
            ends = "at least " if self.saved >= 1 - SIZES[0] else ""
            return (
                f"100 random answers bring what about {100 * (1 - self.saved):.0f} chosen ones bring: {ends}"
                f"{self.saved:.0%} of the answers saved {span}."
            )
        if self.high < 0:
            return (
                f"Choosing does not win: it needs more answers than random questions do, {-self.saved:.0%} more {span}."
            )
        return f"Too early to say whether choosing wins: {self.saved:.0%} saved so far {span}."

    def plain(self) -> dict[str, Any]:
        """For JSON, which has no NaN."""
        numbers = {name: None if part != part else part for name, part in asdict(self).items()}
        return numbers | {"words": self.words}


def worth(given: Labels, random: Given, chosen: Given, learn: Learn, seed: int, draws: int = DRAWS) -> Worth:
    """given: what was known before anybody was asked. chosen: in the order of the answers."""
    seen = round(len(random) * (1 - 1 / FOLDS))  # random answers that a model learns from
    sizes = [size for size in (round(share * seen) for share in SIZES) if 0 < size <= len(chosen)]
    if len(random) < LEAST or not sizes:
        return Worth(len(random), len(chosen))
    rng = np.random.default_rng(seed)
    before = _losses(learn(given), random)
    by_random = _cross_fitted(given, random, learn, rng)
    by_chosen = [_losses(learn(chosen[:size].told(given)), random) for size in sizes]
    if by_random.mean() >= before.mean():
        return Worth(len(random), len(chosen))
    losses = np.stack([by_random, *by_chosen])
    items, at = np.unique(random.rows, return_inverse=True)
    counts = rng.multinomial(len(items), np.full(len(items), 1 / len(items)), draws)[:, at]  # [draws, n]
    means = counts @ losses.T / counts.sum(axis=1, keepdims=True)
    saved = [1 - needed(sizes, row[1:], row[0]) / seen for row in means]
    here = 1 - needed(sizes, losses[1:].mean(axis=1), float(losses[0].mean())) / seen
    low, high = np.quantile(saved, [0.025, 0.975])
    return Worth(len(random), len(chosen), float(here), float(low), float(high))


def needed(sizes: list[int], losses: Floats, goal: float) -> float:
    """How many chosen answers make the loss as low as the goal: between two sizes along the logarithm of their number.
    Never fewer than the first size; twice the last where none is as good."""
    lowest = np.minimum.accumulate(losses)  # more answers that are worse are no reason to need more
    if lowest[0] <= goal:
        return float(sizes[0])
    if lowest[-1] > goal:
        return 2.0 * sizes[-1]
    k = int(np.argmax(lowest <= goal))
    share = (lowest[k - 1] - goal) / (lowest[k - 1] - lowest[k])
    return float(sizes[k - 1] * (sizes[k] / sizes[k - 1]) ** share)


def _cross_fitted(given: Labels, random: Given, learn: Learn, rng: np.random.Generator) -> Floats:
    """The loss of each random answer by a model that has seen none about its item."""
    items, at = np.unique(random.rows, return_inverse=True)
    fold = rng.permutation(np.arange(len(items)) % FOLDS)[at]
    losses = np.empty(len(random))
    for k in range(FOLDS):
        out = fold == k
        if out.any():
            losses[out] = _losses(learn(random[~out].told(given)), random[out])
    return losses


def _losses(predict: Callable[[Positions], npt.NDArray[Any]], answers: Given) -> Floats:
    p = np.asarray(predict(answers.rows), np.float64)[np.arange(len(answers)), answers.columns].clip(FLOOR, 1 - FLOOR)
    found: Floats = -np.log(np.where(answers.z == 1, p, 1 - p))
    return found
