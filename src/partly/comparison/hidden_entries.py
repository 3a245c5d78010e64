"""Metrics of a trained cell on hidden entries, whose truth may be used once training is over.

Papers: T. Durand, N. Mehrasa, G. Mori, CVPR 2019, tables 2 and 8 (TP, TN, label proportion). C.-Y. Hsieh and others,
arXiv 2109.14676, "recover rate". D. Zhou and others, ECCV 2022, "distinguishability" (Wasserstein distance). G. Lyu
and others, AAAI 2025, figure 3 (detected false negatives).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.stats import wasserstein_distance

from partly.clock import Clock
from partly.engine import FittedModel
from partly.items import Items
from partly.labels import Labels
from partly.methods.cls import LEFT_OUT
from partly.methods.curriculum import label_rates

MAX_SCORES = 1 << 18  # of each kind of hidden entries, for the Wasserstein distance


def measure_hidden_labels(fitted: FittedModel, items: Items, observed: Labels, truth: Labels) -> dict[str, float]:
    """Measure pseudo-labels and scores on the hidden entries of the training items; nothing where none is hidden.

    Scores are computed for features only: another pass over images would take as long as an epoch.
    """
    z, hidden = observed.rows(slice(None)), find_hidden(observed, truth)
    if not hidden.any():
        return {}
    metrics: dict[str, float] = {}
    if fitted.beliefs is not None:
        metrics |= measure_pseudo_labels(np.asarray(fitted.beliefs), z, hidden)
    if items.kind == "features":
        scores = fitted.predict(items)
        metrics["wasserstein"] = measure_distance(scores, hidden)
        end = Clock(fitted.config.seed, fitted.config.epochs, epoch=fitted.config.epochs)
        metrics |= measure_left_out(scores, hidden, fitted.method.plan(end).get(LEFT_OUT, 0.0))
    return metrics


def find_hidden(observed: Labels, truth: Labels) -> npt.NDArray[np.int8]:
    """Return the truth of unknown entries, 0 elsewhere, [N, L]."""
    return np.where(observed.rows(slice(None)) == 0, truth.rows(slice(None)), 0).astype(np.int8)


def rank_hidden(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return the truth of the hidden entries by descending score."""
    ranked: npt.NDArray[np.int8] = hidden[hidden != 0][np.argsort(-scores[hidden != 0], kind="stable")]
    return ranked


def measure_left_out(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8], share: float) -> dict[str, float]:
    """Share of yes and of no among the highest-scoring share of hidden entries, which a method leaves out."""
    ranked = rank_hidden(scores, hidden)
    left_out = ranked[: int(np.ceil(share * len(ranked)))]
    if not len(left_out):
        return {}
    yes = float(np.mean(left_out == 1))
    return {"yes left out": yes, "no left out": 1 - yes}


def measure_pseudo_labels(
    beliefs: npt.NDArray[Any], z: npt.NDArray[np.int8], hidden: npt.NDArray[np.int8]
) -> dict[str, float]:
    """Measure pseudo-labels: beliefs above 0.5 are yes, those below are no.

    "labelled" is the share of entries with a label, known ones included. "F1" is that of yes among hidden entries;
    "F1 of all yes" is that of predicting yes everywhere, 2 y / (n + y) for y yes among n entries. hidden: the truth of
    unknown entries, 0 elsewhere; all arrays are [N, L].
    """
    pseudo = np.where(z == 0, np.sign(beliefs - 0.5), 0).astype(np.int8)
    rates = label_rates(torch.from_numpy(pseudo), torch.from_numpy(hidden))
    yes, entries = np.sum(hidden == 1), np.sum(hidden != 0)
    right = np.sum((pseudo == 1) & (hidden == 1))
    predicted = np.sum((pseudo == 1) & (hidden != 0))
    share = float(np.mean((z != 0) | (pseudo != 0)))
    f1 = {"F1": _ratio(2 * right, predicted + yes), "F1 of all yes": _ratio(2 * yes, entries + yes)}
    return {"labelled": share, **rates, **f1}


def measure_distance(scores: npt.NDArray[np.float32], hidden: npt.NDArray[np.int8]) -> float:
    """Wasserstein distance between the scores of hidden yes and of hidden no; NaN where one kind is missing."""
    yes, no = (_thin_out(scores[hidden == kind]) for kind in (1, -1))
    return float(wasserstein_distance(yes, no)) if len(yes) and len(no) else float("nan")


def _ratio(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


def _thin_out(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return evenly spaced scores where there are too many."""
    return scores[:: -(-len(scores) // MAX_SCORES)] if len(scores) else scores
