"""Held-out scores that a label is calibrated on: those of its known yes, and those they are compared with.

Where no's of a label are known, the comparison is with these. Where none is known, it is with all other items, some of
which are hidden yes. The estimated share of yes then gives the probability that a yes is known, assuming that known
yes are a random sample of all yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import Labels, scored
from partly.model_choice import priors
from partly.model_choice.missingness import missingness

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class CalibrationSample:
    """Held-out scores of known yes (`yes`) and of known no or all other items (`rest`).

    `chance`: probability that a yes is known, 1 where `rest` are known no. `no_weight`: weight of an entry of `rest`
    relative to a yes; other than 1 where yes and no are known at different rates (`model_choice.missingness`).
    """

    yes: Floats
    rest: Floats
    chance: float = 1.0
    no_weight: float = 1.0

    @property
    def by_prior(self) -> bool:
        """True if an estimated share of yes replaces known no's."""
        return self.chance < 1

    @property
    def total(self) -> float:
        """Estimated number of yes, known and hidden."""
        return len(self.yes) / self.chance

    def apply(self, map: Any) -> CalibrationSample:
        """Return the sample with mapped scores."""
        return replace(self, yes=map(self.yes), rest=map(self.rest))


def estimate_shares(scores: Floats, labels: Labels) -> Floats:
    """Share of yes of each label [L]: from known no's where there are some, else estimated from yes alone."""
    no = labels.counts()[1]
    shares = np.empty(len(no))
    for method, columns in (("auto" if no.any() else "tice", no > 0), ("tice", no == 0)):
        if columns.any():
            shares[columns] = priors.estimate(scores, labels, method)[columns]
    return shares


def collect_samples(scores: Floats, labels: Labels, shares: Floats) -> list[CalibrationSample]:
    """One sample for each label. shares: of yes among all items, [L]."""
    counts = labels.counts()
    against_no, against_rest = scored.iter_yes_no(scores, labels.ternary()), scored.iter_yes_rest(scores, labels)
    weights = missingness(scores, labels).weights if counts[1].any() else None
    ratios = np.ones(len(shares)) if weights is None else weights[1] / weights[0]
    return [
        CalibrationSample(known[0], known[1], no_weight=float(ratio))
        if no
        else CalibrationSample(everything[0], everything[1], chance=_chance_known(yes, share * len(labels)))
        for known, everything, yes, no, share, ratio in zip(
            against_no, against_rest, *counts, shares, ratios, strict=True
        )
    ]


def _chance_known(known: int, total: float) -> float:
    """Probability that a yes is known, strictly between 0 and 1."""
    return float(np.clip(known / max(total, 1e-12), 1e-12, 1 - 1e-9))


def pool_samples(samples: Sequence[CalibrationSample]) -> CalibrationSample:
    """Join the samples of several labels, all compared with known no's or all with other items."""
    yes, rest = (np.concatenate([getattr(sample, name) for sample in samples]) for name in ("yes", "rest"))
    total, entries = sum(sample.total for sample in samples), sum(len(sample.rest) for sample in samples)
    weight = sum(sample.no_weight * len(sample.rest) for sample in samples)
    chance = len(yes) / total if total else samples[0].chance
    return CalibrationSample(yes, rest, chance, weight / entries if entries else 1.0)
