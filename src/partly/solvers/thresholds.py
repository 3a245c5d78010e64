"""Decision thresholds that maximize the expected F1.

The best threshold on calibrated probabilities is half of the best attainable F1 (Lipton et al., 2014). With positives
only, the model predicts the probability of a *known* positive. It is lower by the label frequency, which is estimated
by the mean over known positives (Elkan and Noto, 2008).
"""

from __future__ import annotations

import numpy as np

from partly.solvers.logistic import Floats

TRUSTED_GAIN = 0.05  # gain above which probabilities are fully trusted
PSEUDO_COUNT = 5.0  # of the pooled label frequency


def best_thresholds(probabilities: Floats, targets: Floats, only_yes: bool, gain: float) -> Floats:
    """Return a threshold per label [L] from held-out probabilities [L, N].

    gain: the relative reduction of the prior's loss. With almost no gain the best expected F1 is that of predicting
    every item, so the threshold then moves towards one half. The same holds for a label without known positives.
    """
    known = np.ones(len(targets), np.float32)
    if only_yes:
        yes = targets > 0.5
        total = np.where(yes, probabilities, 0).sum(axis=1, dtype=np.float64)
        count = yes.sum(axis=1)
        pooled = (total.sum() + 1e-3) / (count.sum() + 1e-3)
        known = ((total + PSEUDO_COUNT * pooled) / (count + PSEUDO_COUNT)).astype(np.float32)
    true = np.minimum(probabilities / known[:, None], 1)
    trust = np.where((targets > 0.5).any(axis=1), min(1.0, max(0.0, gain / TRUSTED_GAIN)), 0.0)
    best = np.array([best_f1(p) / 2 for p in true])
    found: Floats = (known * (trust * best + (1 - trust) * 0.5)).astype(np.float32)
    return np.clip(found, 1e-6, 1 - 1e-6)


def best_f1(p: Floats) -> float:
    """Return the best expected F1 of predicting the items with the largest probabilities."""
    ordered = np.sort(p)[::-1].astype(np.float64)
    called = np.arange(1, len(p) + 1)
    return float(np.max(2 * np.cumsum(ordered) / (called + ordered.sum()), initial=0.0))
