"""Maps that make calibrated logits of the scores of a label, fitted to what it is judged by.

- `platt`: a line, sigmoid(slope * score + bias), of the most likely slope and bias, with Platt's targets, which are a
  little inside of 0 and 1. (J. Platt. Probabilistic Outputs for Support Vector Machines. 1999.)
- `isotonic`: a rising piecewise linear function, by scikit-learn. Its ends stay as far from 0 and 1 as one entry more
  of each kind would keep them. Scores on one step become equal: the order loses some of its detail.

Where no no is known, a yes is known with a chance c that is given: what is fitted is then c times the probability, the
chance to be a *known* yes (C. Elkan, K. Noto. Learning Classifiers from Only Positive and Unlabeled Data. KDD 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from partly.calibration.judged import CalibrationSample, Floats


@dataclass(frozen=True)
class PlattMap:
    """slope * score + bias."""

    slope: float = 1.0
    bias: float = 0.0

    def __call__(self, scores: Floats) -> Floats:
        result: Floats = np.asarray(self.slope * scores + self.bias, scores.dtype)
        return result


@dataclass(frozen=True)
class IsotonicMap:
    """Logits of the probabilities y at the scores x, both rising; between them on a straight line of probability."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, scores: Floats) -> Floats:
        result: Floats = np.asarray(logit(np.interp(scores, self.x, self.y)), scores.dtype)
        return result


Map = PlattMap | IsotonicMap
IDENTITY = PlattMap()


def platt(of: CalibrationSample) -> PlattMap | None:
    """None where higher scores do not mean yes, or all can be told apart by no end of slope."""
    from scipy.optimize import minimize  # a tenth of a second, of which most runs have no use

    middle, scale = _moments(of)
    s = (np.concatenate([of.yes, of.rest]) - middle) / scale
    yes, rest = len(of.yes), len(of.rest)
    wanted = np.repeat([(yes + 1) / (yes + 2), 1 / (rest + 2)], [yes, rest])
    counts = _counts(of)

    def loss(line: Floats) -> tuple[float, Floats]:
        p = expit(line[0] * s + line[1])
        q = np.clip(of.chance * p, 1e-15, 1 - 1e-15)  # the chance to be a known yes
        value = -(counts * (wanted * np.log(q) + (1 - wanted) * np.log1p(-q))).mean()
        slope = counts * (q - wanted) / (1 - q) * (1 - p)  # by the logit; with chance 1 and no weights it is q - wanted
        return float(value), np.array([(slope * s).mean(), slope.mean()])

    found = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS", options={"gtol": 1e-8})
    slope, bias = found.x
    return PlattMap(float(slope / scale), float(bias - slope * middle / scale)) if slope > 0 else None


def isotonic(of: CalibrationSample) -> IsotonicMap | None:
    """None where higher scores do not mean yes: then all would become equal."""
    from sklearn.isotonic import IsotonicRegression  # over a second, of which most runs have no use

    scores = np.concatenate([of.yes, of.rest]).astype(np.float64)
    known = np.repeat([1.0, 0.0], [len(of.yes), len(of.rest)])
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, known, _counts(of))
    x, y = fitted.X_thresholds_, fitted.y_thresholds_ / of.chance
    margin = 1 / (len(scores) + 2)
    return IsotonicMap(tuple(x.tolist()), tuple(np.clip(y, margin, 1 - margin).tolist())) if y[-1] > y[0] else None


def _counts(of: CalibrationSample) -> Floats:
    """How much each entry counts, with a mean of 1."""
    counts = np.repeat([1.0, of.no_weight], [len(of.yes), len(of.rest)])
    return np.asarray(counts / counts.mean())


def _moments(of: CalibrationSample) -> tuple[float, float]:
    scores = np.concatenate([of.yes, of.rest]).astype(np.float64)
    return float(scores.mean()), float(scores.std()) or 1.0


METHODS: dict[str, Callable[[CalibrationSample], Map | None]] = {"platt": platt, "isotonic": isotonic}


def as_plain(map: Map) -> dict[str, Any]:
    """For JSON."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(map).items()}


def from_plain(said: dict[str, Any]) -> Map:
    """The inverse of `as_plain`."""
    return PlattMap(**said) if "slope" in said else IsotonicMap(tuple(said["x"]), tuple(said["y"]))
