"""The AUC of known yes against everything else, as a mean over labels: no no is needed.

Assumes: within a label, which yes are known is a matter of chance (missing completely at random). Hidden yes among the
others then draw the AUC of every model towards one half by the same factor, 1 - the share of hidden yes among the
others: models are ordered as the true AUC orders them, label by label. Where easy yes are named first, models that find
the easy ones gain. Labels count alike, those with one known yes too, so that it is noisy where labels are rare.

Paper: A. K. Menon, B. van Rooyen, C. S. Ong, R. C. Williamson. Learning from Corrupted Binary Labels via
Class-Probability Estimation. ICML 2015.
"""

from __future__ import annotations

import numpy as np

from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels) -> float:
    """Only the order of a label's scores matters. NaN where nothing is known to be yes."""
    return scored.mean(np.array([scored.auc(yes, rest) for yes, rest in scored.against_rest(scores, labels)]))
