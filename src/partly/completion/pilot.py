"""Pilot of an audit: the first questions, which locate thresholds to certify and estimate the number of hidden yes.

Entries are drawn without replacement from all candidates, the probable yes far more often than others. The answers
recalibrate the probabilities and choose the first zone of yes, which later answers test. So the pilot costs questions,
but no error budget. Corrected by these answers, the probabilities also estimate totals (prediction-powered inference).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from partly.clock import seed_for
from partly.completion.entry_scores import Bools, EntryScores, Floats

Positions = npt.NDArray[np.int64]
Ternary = npt.NDArray[np.int8]

PILOT_SHARE = 0.15  # of all questions
FLAT_RANKS = 50  # the most probable entries, which are drawn about equally often
PRIOR_MEANS, PRIOR_DEVIATIONS = np.array([0.0, 1.0]), np.array([1.0, 0.5])  # of intercept and slope
MIN_SLOPE = 0.1
NEWTON_STEPS = 50


@dataclass(frozen=True, eq=False)
class Pilot:
    """Entries in the order of the questions, each with the probability of its draw from the remaining ones."""

    rows: Positions
    columns: Positions
    draw_chance: Floats
    yes_chance: Floats

    @classmethod
    def draw(cls, entries: EntryScores, seed: int, count: int) -> Pilot:
        """Draw so many candidates, with probabilities that fall with the rank of an entry."""
        rows, columns = np.nonzero(entries.candidates & entries.fillable)
        chance = entries.chance[rows, columns]
        rank = np.empty(len(chance), np.int64)
        rank[np.argsort(-chance, kind="stable")] = np.arange(len(chance))
        weight = 1 / (rank + FLAT_RANKS)
        # Weighted draws without replacement are a race of exponential clocks (Efraimidis and Spirakis, 2006).
        clocks = np.random.default_rng(seed_for(seed, "pilot")).exponential(size=len(chance)) / weight
        drawn = np.argsort(clocks, kind="stable")[:count]
        left = weight.sum() - (np.cumsum(weight[drawn]) - weight[drawn])
        return cls(rows[drawn], columns[drawn], weight[drawn] / left, chance[drawn])

    def find_unanswered(self, answers: Ternary) -> Positions:
        """Return the positions of the draws without an answer."""
        return np.flatnonzero(answers[self.rows, self.columns] == 0)

    def mask(self, shape: tuple[int, ...]) -> Bools:
        """Return the drawn entries as a mask [N, L]."""
        mask = np.zeros(shape, bool)
        mask[self.rows, self.columns] = True
        return mask

    def recalibrate(self, chance: Floats, answers: Ternary) -> Floats:
        """Return the probabilities of yes, corrected by one intercept and one slope that fit the answers.

        It is the posterior mode of a logistic regression; without answers, probabilities are unchanged.
        """
        score = np.clip(logit(self.yes_chance), -30, 30)
        design = np.stack([np.ones(len(score)), score], axis=1)
        yes = answers[self.rows, self.columns] == 1
        weights = PRIOR_MEANS.copy()
        for _ in range(NEWTON_STEPS):
            fitted = expit(design @ weights)
            gradient = design.T @ (yes - fitted) - (weights - PRIOR_MEANS) / PRIOR_DEVIATIONS**2
            curvature = (design.T * (fitted * (1 - fitted))) @ design + np.diag(1 / PRIOR_DEVIATIONS**2)
            weights = weights + np.clip(np.linalg.solve(curvature, gradient), -1, 1)
        with np.errstate(divide="ignore"):
            return np.asarray(expit(weights[0] + max(weights[1], MIN_SLOPE) * logit(chance)), np.float64)

    def estimate_total(self, predicted: float, outside: Bools, answers: Ternary) -> tuple[float, float]:
        """Return an estimate of the number of yes among some candidates, and its standard error.

        predicted: sum of their probabilities; outside: which draws are among them. Each draw corrects the sum without
        bias (Des Raj, 1956), and the corrections are uncorrelated, so their spread estimates the error.
        """
        correction = np.where(outside, (answers[self.rows, self.columns] == 1) - self.yes_chance, 0.0)
        estimates = np.cumsum(correction) - correction + correction / self.draw_chance
        error = float(estimates.std(ddof=1) / math.sqrt(len(estimates))) if len(estimates) > 1 else math.inf
        return predicted + float(estimates.mean()), error
