"""The mean average precision of known yes among all items, everything else taken for no.

Assumes: within a label known yes are a matter of chance. Even then hidden yes high up in the list count as errors, and
more so for a good model: it orders models as clean labels would only where few yes are hidden, or where models differ
by much. It looks at the top of the list, as mAP does and AUC does not.
"""

from __future__ import annotations

import numpy as np

from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels) -> float:
    """Only the order of a label's scores matters. NaN where nothing is known to be yes."""
    found = [scored.average_precision(yes, rest) for yes, rest in scored.against_rest(scores, labels)]
    return scored.mean(np.array(found))
