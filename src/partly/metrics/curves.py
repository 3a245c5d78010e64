"""Average precision and AUROC with the influence of each entry.

The influence of an item on a metric T is its derivative dT/dw by the item's weight w, at w = 1 (the infinitesimal
jackknife). The sum of the squared influences estimates the variance of T over samples of items. The influences of two
models on the same items give the variance of their difference.

- AP = (1/Y) * sum over yes a of P(a), P(a) = H(a) / (H(a) + F(a)), where H and F count yes and no that score
  at least as high as a.
- AUROC = share of (yes, no) pairs in which the yes scores higher; ties count half. Its influences are the structural
  components of E. DeLong, D. DeLong, D. Clarke-Pearson. Comparing the Areas under Two or More Correlated Receiver
  Operating Characteristic Curves. Biometrics 1988.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from partly.labels.scored import Scores
from partly.metrics.validation import Floats

Influence = tuple[float, Floats, Floats]  # value, influence of each yes, influence of each no


def average_precision_influence(yes: Scores, no: Scores) -> Influence:
    """Return the AP of one label and the influence of each yes and each no."""
    if not len(yes) or not len(no):
        return math.nan, np.zeros(len(yes)), np.zeros(len(no))
    order = np.argsort(yes)
    ranked = yes[order]
    hits = len(yes) - np.searchsorted(ranked, ranked)
    false_alarms = len(no) - np.searchsorted(np.sort(no), ranked)
    claims = hits + false_alarms
    precision = hits / claims
    value = float(precision.mean())
    gain = np.concatenate([[0.0], np.cumsum(false_alarms / claims**2)])  # of one more yes at or above each yes
    loss = np.concatenate([[0.0], np.cumsum(hits / claims**2)])  # of one more no
    of_yes = np.empty(len(yes))
    of_yes[order] = precision - value + gain[np.searchsorted(ranked, ranked, side="right")]
    of_no = -loss[np.searchsorted(ranked, no, side="right")]
    return value, of_yes / len(yes), of_no / len(yes)


def auroc_influence(yes: Scores, no: Scores) -> Influence:
    """Return the AUROC of one label and the influence of each yes and each no."""
    if not len(yes) or not len(no):
        return math.nan, np.zeros(len(yes)), np.zeros(len(no))
    beaten = _halves_below(yes, no)
    of_yes = beaten / 2 / len(no)  # share of no that it beats
    of_no = 1 - _halves_below(no, yes) / 2 / len(yes)  # share of yes that beat it
    value = float(beaten.sum() / 2 / (len(yes) * len(no)))
    return value, (of_yes - value) / len(yes), (of_no - value) / len(no)


def _halves_below(values: Scores, others: Scores) -> npt.NDArray[np.int64]:
    """Return twice the number of `others` below each value, ties counted once."""
    rest = np.sort(others)
    return np.searchsorted(rest, values, side="left") + np.searchsorted(rest, values, side="right")
