"""The AUC of known yes against everything else, where a label weighs by its known yes.

Assumes: as `auc-unknown-as-no`, within a label known yes are a matter of chance. Beside that, that frequently known
labels speak for the rare ones: it is the mean over all known yes of the share of other items below them, so that
labels with one or two known yes, whose AUC is mostly noise, hardly matter.

Paper: A. K. Menon, B. van Rooyen, C. S. Ong, R. C. Williamson. Learning from Corrupted Binary Labels via
Class-Probability Estimation. ICML 2015, for one label.
"""

from __future__ import annotations

import math

import numpy as np

from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels) -> float:
    """Only the order of a label's scores matters. NaN where nothing is known to be yes."""
    pairs = [(scored.auc(yes, rest), len(yes)) for yes, rest in scored.against_rest(scores, labels)]
    defined = np.array([pair for pair in pairs if not math.isnan(pair[0])]).reshape(-1, 2)
    return float(np.average(defined[:, 0], weights=defined[:, 1])) if len(defined) else math.nan
