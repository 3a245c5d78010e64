"""The mean of 1 / rank of known yes among the labels of their own item.

Assumes: of an item's yes, which ones are known is a matter of chance, as where somebody names one thing that he sees.
Where frequent labels are named more often, models that name these gain. It compares the scores of different labels,
which the other criteria do not, so they are calibrated anew first (`log-loss`): what an AUC or a mAP of labels can not
see decides here too.
"""

from __future__ import annotations

import math

import numpy as np

from partly.choosing.criteria.log_loss import judged, standardised
from partly.choosing.recalibration import fitted
from partly.labels import Labels, scored


def criterion(scores: scored.Scores, labels: Labels) -> float:
    """Other known yes of the item are passed over; equal scores share the mean of their ranks. NaN without yes."""
    fit = fitted(judged(scores, labels))
    logits = fit.scale * standardised(scores.T).T + fit.biases
    rows, columns, said = labels.entries()
    rows, columns = rows[said == 1], columns[said == 1]
    found = [reciprocals(logits[row], columns[start:stop]) for row, start, stop in _runs(rows)]
    return float(np.concatenate(found).mean()) if found else math.nan


def reciprocals(scores: scored.Scores, yes: scored.Scores) -> scored.Scores:
    """1 / rank of each yes of one item among its labels that are not known to be yes. scores: [L], yes: positions."""
    rest = np.sort(np.delete(scores, yes))
    below, up_to = (np.searchsorted(rest, scores[yes], side=side) for side in ("left", "right"))
    return 1 / (1 + len(rest) - (below + up_to) / 2)


def _runs(rows: scored.Scores) -> list[tuple[int, int, int]]:
    """Item, and where its entries start and stop."""
    items, starts, counts = np.unique(rows, return_index=True, return_counts=True)
    return list(zip(items, starts, starts + counts, strict=True))
