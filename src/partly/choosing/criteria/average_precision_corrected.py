"""The mean average precision among all items, with hidden yes added as an estimate of their number says.

Assumes: within a label known yes are a matter of chance, so that hidden yes lie among the scores as the known ones do,
and that the share of yes of each label (`partly.priors.estimate`) is about right: a share that is too high lifts all
models to a precision of 1, where they cannot be told apart. Estimates for rare labels are often far off. A bad model's
own scores make for a high estimate, which flatters it: to compare models give all of them the same shares, such as the
lowest of their estimates, each of which errs upwards.

Differs: at the k-th of n known yes, r items down, precision is not k / r but (k + h (k - 1/2) / n) / r, and at most 1,
where h = share x items - n are hidden. With nothing hidden it is the average precision with unknown taken for no.
"""

from __future__ import annotations

import math

import numpy as np

from partly.choosing import priors
from partly.errors import SettingError
from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels, *, prior: str | tuple[float, ...] = "auto") -> float:
    """prior: the share of yes of each label, or how to estimate it from these scores. NaN where no yes is known."""
    shares = priors.estimate(scores, labels, prior) if isinstance(prior, str) else np.array(prior)
    if shares.shape != labels.shape[1:]:
        raise SettingError(
            f"average-precision-corrected: prior holds {shares.size} shares for {labels.shape[1]} labels."
        )
    pairs = zip(scored.against_rest(scores, labels), shares, strict=True)
    return scored.mean(np.array([corrected(yes, rest, share) for (yes, rest), share in pairs]))


def corrected(yes: scored.Scores, rest: scored.Scores, share: float) -> float:
    """Average precision of one label of which this share of all items is yes; equal scores are one threshold."""
    if not len(yes) or not len(rest):
        return math.nan
    yes, rest = np.sort(yes), np.sort(rest)
    count = len(yes)
    hits, above = (count - np.searchsorted(yes, yes, side=side) for side in ("left", "right"))
    hidden = max(share * (count + len(rest)) - count, 0) * (hits + above) / (2 * count)
    rank = hits + len(rest) - np.searchsorted(rest, yes)
    return float(np.minimum((hits + hidden) / rank, 1).mean())
