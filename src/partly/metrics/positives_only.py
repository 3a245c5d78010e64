"""Metrics of the whole matrix if only yes is known, from the share of yes (the prior) of each label.

Assumption: within a label, the known yes are drawn at random from all yes (selected completely at random). Then recall
is that of the known yes, and with the prior pi of a label and N items:

- TP = pi * N * recall, at most the number of predicted entries; precision = TP / predicted,
  F1 = 2 TP / (predicted + pi N).
- AP = mean over known yes a of pi * N * recall(a) / (entries that score at least as high as a).
- AUROC = (A - w / 2) / (1 - w), where A is the AUROC of known yes against unknown entries, and w the share of yes among
  these (A. Menon, B. van Rooyen, C. S. Ong, R. Williamson. Learning from Corrupted Binary Labels via Class-Probability
  Estimation. ICML 2015).
- P@k = sum over items and labels of known yes(top k of all labels) / c / (k N), where c = known yes / (pi N).

(M. du Plessis, M. Sugiyama; S. Jain, M. White, P. Radivojac. Recovering True Classifier Performance in
Positive-Unlabeled Learning. AAAI 2017.) Precision has the same relative error as the prior.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from partly.errors import DataError
from partly.labels import scored
from partly.labels.scored import Scores
from partly.metrics.entry_counts import EntryCounts
from partly.metrics.inverse_probability import Table, summarize_counts
from partly.metrics.validation import Floats


def check_prior(prior: npt.ArrayLike, counts: EntryCounts) -> Floats:
    """Return the prior of each label [L]; refuse one that is below the share of known yes."""
    array = np.asarray(prior, np.float64)
    labels = len(counts.yes)
    if array.shape not in ((), (labels,)) or not ((array >= 0) & (array <= 1)).all():
        raise DataError(f"prior needs one share of yes from 0 to 1, or one for each of the {labels} labels.")
    array = np.broadcast_to(array, (labels,))
    known = counts.yes / max(counts.items, 1)
    low = np.flatnonzero(array < known - 1e-9)
    if len(low):
        j = int(low[0])
        raise DataError(
            f"prior: {len(low)} labels have more known yes than the prior allows; the first is label {j + 1} with "
            f"prior {array[j]:.3g} and a share of known yes of {known[j]:.3g}. Give larger priors, or leave them out."
        )
    return array


def estimate_counts(counts: EntryCounts, prior: Floats) -> tuple[dict[str, float], Table]:
    """Return metrics at the threshold and P@k, pooled and of each label."""
    covered = counts.yes > 0
    yes = np.where(covered, np.maximum(prior * counts.items, counts.yes), 0)
    scale = np.divide(yes, counts.yes, out=np.zeros_like(yes), where=covered)  # yes for each known yes
    hits = np.minimum(scale * counts.hits, counts.hits + counts.predicted_unknown)
    predicted = np.where(covered, counts.predicted, 0)
    return summarize_counts(counts, hits, predicted, yes, covered, scale * counts.top_yes)


def rank_label(yes: Scores, no: Scores, unknown: Scores, prior: float) -> tuple[float, float]:
    """Return AP and AUROC of a label. A known no counts as an unknown entry does: the prior covers both."""
    rest = np.concatenate([no, unknown])
    items = len(yes) + len(rest)
    positives = max(prior * items, len(yes))
    hidden = (positives - len(yes)) / max(len(rest), 1)  # share of yes among the others
    if not len(yes) or not len(rest) or hidden >= 1:
        return math.nan, math.nan
    order = np.sort(yes)
    reached = len(yes) - np.searchsorted(order, order)
    claims = reached + len(rest) - np.searchsorted(np.sort(rest), order)
    ap = float(np.minimum(positives * (reached / len(yes)) / claims, 1).mean())
    return ap, float(np.clip((scored.auc(yes, rest) - hidden / 2) / (1 - hidden), 0, 1))
