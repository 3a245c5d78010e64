"""The same things as `partly.solvers` does, the slow and obvious way."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

Array = np.ndarray[Any, Any]


def z_scored(scores: Array) -> Array:
    return np.stack([(row - row.mean()) / (row.std() or 1) for row in np.asarray(scores, float)])


def calibrated(scores: Array, weights: Array, targets: Array) -> tuple[float, float, Array]:
    """(loss, slope of the z-scores, biases): a common slope, a bias for each label, one entry more for each bias."""
    z, weights = z_scored(scores), np.asarray(weights, float)
    pooled = ((weights * targets).sum() + 0.5) / (weights.sum() + 1)

    def losses(v: Array) -> Array:
        f = v[0] * z + v[1:, None]
        return weights * (np.logaddexp(0, f) - targets * f)

    def objective(v: Array) -> float:
        return float(losses(v).sum() + (np.logaddexp(0, v[1:]) - pooled * v[1:]).sum())

    start = np.concatenate([[1.0], np.full(len(z), -1.0)])
    bounds = [(0, 20), *[(None, None)] * len(z)]
    v = minimize(objective, start, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-8}).x
    return float(losses(v).sum() / weights.sum()), float(v[0]), v[1:]


def regression(x: Array, weights: Array, target: Array, c: float) -> tuple[Array, float]:
    """Coefficients and bias of one label by scikit-learn; no coefficients where nothing can be told apart."""
    seen = weights > 0
    if len(set(target[seen])) < 2:
        return np.zeros(x.shape[1]), 0.0
    found = LogisticRegression(C=c, tol=1e-8, max_iter=10_000)
    found.fit(x[seen], target[seen] > 0.5, sample_weight=weights[seen])
    return found.coef_[0], float(found.intercept_[0])
