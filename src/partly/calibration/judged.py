"""What a label is judged by: scores of its known yes, and of what stands against them.

Where some no of a label is known, these are its known no, and every yes among the two is known. Where none is, they are
all other items, of which some are hidden yes: the estimated share of yes takes the place of the no's. It says with
which chance a yes is known, if those that are known were named by chance; all else follows from that chance.
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
    """Held-out scores of known yes and of what stands against them, and the chance that a yes is among the first.

    no_weight: how much an entry of `rest` counts, where a yes counts 1; other than 1 where yes and no are known at
    different rates (`choosing.missingness`).
    """

    yes: Floats
    rest: Floats
    chance: float = 1.0
    no_weight: float = 1.0

    @property
    def by_prior(self) -> bool:
        """Whether the estimated share of yes takes the place of known no's."""
        return self.chance < 1

    @property
    def total(self) -> float:
        """How many yes there are among both, as far as is known."""
        return len(self.yes) / self.chance

    def mapped(self, map: Any) -> CalibrationSample:
        """The same with other scores."""
        return replace(self, yes=map(self.yes), rest=map(self.rest))


def shares(scores: Floats, labels: Labels) -> Floats:
    """The share of yes of each label [L]: by known no's where there are some of it, else estimated from yes alone."""
    no = labels.counts()[1]
    found = np.empty(len(no))
    for method, these in (("auto" if no.any() else "tice", no > 0), ("tice", no == 0)):
        if these.any():
            found[these] = priors.estimate(scores, labels, method)[these]
    return found


def calibration_samples(scores: Floats, labels: Labels, share: Floats) -> list[CalibrationSample]:
    """Of each label. share [L]: of yes among all items."""
    counts = labels.counts()
    by_no, by_rest = scored.iter_yes_no(scores, labels.ternary()), scored.iter_yes_rest(scores, labels)
    weights = missingness(scores, labels).weights if counts[1].any() else None
    ratio = np.ones(len(share)) if weights is None else weights[1] / weights[0]
    return [
        CalibrationSample(known[0], known[1], no_weight=float(count))
        if no
        else CalibrationSample(all_others[0], all_others[1], chance=_chance(yes, part * len(labels)))
        for known, all_others, yes, no, part, count in zip(by_no, by_rest, *counts, share, ratio, strict=True)
    ]


def _chance(known: int, there: float) -> float:
    """That a yes is known; below 1, and above 0, so that a label of which nothing is known has no yes."""
    return float(np.clip(known / max(there, 1e-12), 1e-12, 1 - 1e-9))


def pooled_sample(parts: Sequence[CalibrationSample]) -> CalibrationSample:
    """Entries of several labels as if they were of one; all judged by known no's, or all by a share."""
    yes, rest = (np.concatenate([getattr(part, what) for part in parts]) for what in ("yes", "rest"))
    total, entries = sum(part.total for part in parts), sum(len(part.rest) for part in parts)
    counted = sum(part.no_weight * len(part.rest) for part in parts)
    chance = len(yes) / total if total else parts[0].chance
    return CalibrationSample(yes, rest, chance, counted / entries if entries else 1.0)
