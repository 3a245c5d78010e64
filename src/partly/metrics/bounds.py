"""Worst-case bounds on metrics of the whole matrix. They need no assumption on the unknown entries.

An unknown entry may be yes or no. Precision is lowest where every unknown entry that is predicted yes is a no, and
highest where each is a yes. Recall and F1 are lowest where all unknown entries that are predicted yes are no and all
others yes. Each bound is attained by some matrix, so no narrower bound is possible without an assumption (C. Manski.
Partial Identification of Probability Distributions. 2003).

Macro metrics run over the labels with a known yes, as on known entries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from partly.labels import scored
from partly.labels.scored import Scores
from partly.metrics.counts import precision_recall_f1
from partly.metrics.entry_counts import EntryCounts
from partly.metrics.intervals import UNDEFINED, Interval
from partly.metrics.top_ranks import RANKS

NAMES = ("precision", "recall", "F1")
POOLED, MACRO = ("OP", "OR", "OF1"), ("CP", "CR", "macro_f1")


def bound_counts(counts: EntryCounts) -> dict[str, Interval]:
    """Return bounds on precision, recall, F1, prevalence and P@k."""
    labels, with_yes = len(counts.yes), counts.yes > 0
    missed = counts.yes + counts.unknown - counts.predicted_unknown
    extremes = ((counts.hits, missed), (counts.hits + counts.predicted_unknown, counts.yes + counts.predicted_unknown))
    low, high = (_ratios(hits, counts, yes, with_yes) for hits, yes in extremes)
    result = {name: (low[name], high[name]) for name in low}
    entries = counts.items * labels
    if entries:
        yes = float(counts.yes.sum())
        result["prevalence"] = yes / entries, (yes + float(counts.unknown.sum())) / entries
    for place, k in enumerate(RANKS):
        places = counts.items * min(k, labels)
        top = float(counts.top_yes[place].sum()), float(counts.top_unknown[place].sum())
        result[f"P@{k}"] = (top[0] / places, (top[0] + top[1]) / places) if places else UNDEFINED
    return result


def _ratios(hits: np.ndarray, counts: EntryCounts, yes: np.ndarray, with_yes: np.ndarray) -> dict[str, float]:
    columns = precision_recall_f1(hits, counts.predicted, yes)
    pooled = precision_recall_f1(hits.sum(), counts.predicted.sum(), yes.sum())
    result = {name: float(value) for name, value in zip(POOLED, pooled, strict=True)}
    return result | {name: scored.mean(column[with_yes]) for name, column in zip(MACRO, columns, strict=True)}


def bound_auroc(columns: Iterable[tuple[Scores, Scores, Scores]]) -> Interval:
    """Return bounds on the AUROC, averaged over labels with a known yes and a known no.

    columns: scores of known yes, known no and unknown entries of each label.
    """
    bounds = [_bound_auroc(*parts) for parts in columns if len(parts[0]) and len(parts[1])]
    if not bounds:
        return UNDEFINED
    low, high = np.mean(bounds, axis=0).tolist()
    return low, high


def _bound_auroc(yes: Scores, no: Scores, unknown: Scores) -> Interval:
    """Return the lowest and highest AUROC of one label.

    With m yes among the unknown entries, AUROC is lowest where they are the m lowest scores, and highest where they
    are the m highest; all m are tried. AUROC = (rank sum of yes - Y (Y + 1) / 2) / (Y * (N - Y)).
    """
    scores = np.concatenate([yes, no, unknown])
    ordered = np.sort(scores)
    ranks = (np.searchsorted(ordered, scores) + np.searchsorted(ordered, scores, side="right") + 1) / 2  # ties: mean
    known = math.fsum(ranks[: len(yes)].tolist())
    hidden = np.sort(ranks[len(yes) + len(no) :])
    positives = len(yes) + np.arange(len(unknown) + 1)
    pairs = positives * (len(ranks) - positives)
    sums = (known + np.concatenate([[0.0], np.cumsum(part)]) for part in (hidden, hidden[::-1]))
    low, high = ((total - positives * (positives + 1) / 2) / pairs for total in sums)
    return float(low.min()), float(high.max())
