"""How far up known yes stand in the list of their label: minus the mean logarithm of their rank / items.

Assumes: within a label known yes are a matter of chance. Hidden yes above a known one push it down, for every model,
for a good one more. The logarithm looks at the top of the list: from rank 10 to rank 1 is as far as from 1000 to 100.
All known yes count alike, so that labels weigh by how many are known.
"""

from __future__ import annotations

import math

import numpy as np

from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels) -> float:
    """Rank 1 is the highest score; equal scores share the mean of their ranks. NaN where nothing is known to be yes."""
    logs = [np.log(ranks(yes, rest) / labels.shape[0]) for yes, rest in scored.against_rest(scores, labels)]
    found = np.concatenate(logs) if logs else np.empty(0)
    return -float(found.mean()) if len(found) else math.nan


def ranks(yes: scored.Scores, rest: scored.Scores) -> scored.Scores:
    """Of each yes among all items of a label."""
    every = np.sort(np.concatenate([yes, rest]))
    below, up_to = (np.searchsorted(every, yes, side=side) for side in ("left", "right"))
    return len(every) - (below + up_to - 1) / 2
