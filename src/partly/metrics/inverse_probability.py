"""Metrics of the whole matrix by inverse probability: each known entry stands for some entries of its label.

- **At random**: within a label, unknown entries are like known ones. A known entry of a label with K of N entries known
  stands for N / K entries. AP, AUROC, precision, recall and F1 of a label are those of its known entries; the weights
  change what pools labels:

      OP = sum w hits / sum w predicted,  OR = sum w hits / sum w yes,  prevalence = sum w yes / (N L),
      P@k = sum over items and labels of w y(top k of all labels) / (k N)

- **By answer**: within a label, yes and no are each known at random, at different rates. A known yes stands for
  (known + hidden yes) / known yes entries, and a known no likewise; `model_choice.missingness` estimates them.

(D. Horvitz, D. Thompson. A Generalization of Sampling Without Replacement from a Finite Universe. 1952.) Labels without
a known entry are left out.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from partly.labels import scored
from partly.labels.scored import Scores
from partly.metrics.bounds import MACRO, NAMES, POOLED
from partly.metrics.counts import precision_recall_f1
from partly.metrics.entry_counts import EntryCounts
from partly.metrics.top_ranks import RANKS
from partly.metrics.validation import Floats, Weights

Table = dict[str, Floats]  # column -> [L]


def weights_at_random(counts: EntryCounts) -> Weights:
    """Return how many entries a known entry of each label stands for, as weights of yes and of no."""
    known = counts.yes + counts.no
    weights = np.divide(counts.items, known, out=np.zeros_like(known), where=known > 0)
    return weights, weights


def estimate_counts(counts: EntryCounts, weights: Weights) -> tuple[dict[str, float], Table]:
    """Return metrics at the threshold and P@k, pooled and of each label, from weighted known entries."""
    hits, yes = weights[0] * counts.hits, weights[0] * counts.yes
    predicted = hits + weights[1] * counts.false_alarms
    covered = counts.yes + counts.no > 0
    return summarize_counts(counts, hits, predicted, yes, covered, weights[0] * counts.top_yes)


def summarize_counts(
    counts: EntryCounts, hits: Floats, predicted: Floats, yes: Floats, covered: npt.NDArray[np.bool_], top: Floats
) -> tuple[dict[str, float], Table]:
    """Return pooled and macro metrics, and those of each label, from estimated numbers of entries [L]."""
    columns = dict(zip(NAMES, _ratios(hits, predicted, yes), strict=True))
    values = {name: scored.mean(columns[column]) for name, column in zip(MACRO, NAMES, strict=True)}
    pooled = _ratios(*(part[covered].sum() for part in (hits, predicted, yes)))
    values |= {name: float(value) for name, value in zip(POOLED, pooled, strict=True)}
    columns["prevalence"] = np.where(covered, yes / max(counts.items, 1), np.nan)
    values["prevalence"] = scored.mean(columns["prevalence"])
    for place, k in enumerate(RANKS):
        places = counts.items * min(k, len(yes))
        values[f"P@{k}"] = min(float(top[place].sum()) / places, 1.0) if places and covered.all() else np.nan
    return values, columns


def _ratios(hits: Floats, predicted: Floats, yes: Floats) -> list[Floats]:
    """Return precision, recall and F1, at most 1."""
    return [np.minimum(values, 1) for values in precision_recall_f1(hits, predicted, yes)]


def rank_label(yes: Scores, no: Scores, unknown: Scores, ratio: float) -> tuple[float, float]:
    """Return AP and AUROC of a label from its known entries; ratio: weight of a no relative to a yes."""
    return scored.average_precision(yes, no, ratio), scored.auc(yes, no)
