"""The mean average precision (mAP) on known entries.

Assumes: entries are missing at random within each label, yes and no alike, since precision depends on the share of yes
among what is known. Then it estimates the mAP on clean labels; where few yes of a label are known, as there are with
10 % of a rare label, the estimate of that label is little more than noise, and counts as much as any other.
"""

from __future__ import annotations

import numpy as np

from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels) -> float:
    """As `partly.metrics.average_precision`, a mean over labels. NaN where no label has a known yes and a known no."""
    found = [scored.average_precision(yes, no) for yes, no in scored.columns(scores, labels.ternary())]
    return scored.mean(np.array(found))
