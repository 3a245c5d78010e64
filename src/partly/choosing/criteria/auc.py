"""The AUC of known yes against known no, as a mean over labels.

Assumes: entries are missing at random within each label, yes and no each: then it estimates the AUC on clean labels.
The share of yes among what is known need not be right, since AUC does not depend on it. A label counts where a yes and
a no of it are known, with few known entries as much as with many, so that it is noisy where labels are rare.

Paper: J. A. Hanley, B. J. McNeil. The Meaning and Use of the Area under a Receiver Operating Characteristic (ROC)
Curve. Radiology 1982.
"""

from __future__ import annotations

import numpy as np

from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels) -> float:
    """Only the order of a label's scores matters. NaN where no label has both."""
    found = [scored.auc(yes, no) for yes, no in scored.columns(scores, labels.ternary())]
    return scored.mean(np.array(found))
