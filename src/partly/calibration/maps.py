"""Maps from the scores of a label to calibrated logits.

- `platt`: sigmoid(slope * score + bias), fitted by maximum likelihood to Platt's targets, which are slightly inside 0
  and 1. (J. Platt. Probabilistic Outputs for Support Vector Machines. 1999.)
- `isotonic`: scikit-learn's isotonic regression, clipped as if one more entry of each kind were known. It makes the
  scores of each step equal, so the ranking becomes coarser.

Where no no is known, a yes is known with a given probability c. The fitted quantity is then c times the probability of
yes, the probability of being a *known* yes (C. Elkan, K. Noto. Learning Classifiers from Only Positive and Unlabeled
Data. KDD 2008).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import expit, logit
from torch.nn.functional import pad

from partly.calibration.samples import CalibrationSample, Floats

VECTOR_ENTRIES = 64  # a multiple of the vector width of any processor
SINGLE_THREAD_ENTRIES = 1 << 15  # torch gives no thread fewer


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
    """Logits of the probabilities y at the scores x, both ascending, interpolated linearly in probability."""

    x: tuple[float, ...]
    y: tuple[float, ...]

    def __call__(self, scores: Floats) -> Floats:
        result: Floats = np.asarray(logit(np.interp(scores, self.x, self.y)), scores.dtype)
        return result


Map = PlattMap | IsotonicMap
IDENTITY = PlattMap()


def fit_platt(sample: CalibrationSample) -> PlattMap | None:
    """Fit slope and bias; None where higher scores do not mean yes."""
    from scipy.optimize import minimize  # slow to import, and most runs do not need it

    scores = np.concatenate([sample.yes, sample.rest]).astype(np.float64)
    center, scale = float(scores.mean()), float(scores.std()) or 1.0
    s = (np.concatenate([sample.yes, sample.rest]) - center) / scale
    yes, rest = len(sample.yes), len(sample.rest)
    targets = np.repeat([(yes + 1) / (yes + 2), 1 / (rest + 2)], [yes, rest])
    weights = _normalize_weights(sample)

    def loss(line: Floats) -> tuple[float, Floats]:
        p = expit(line[0] * s + line[1])
        q = np.clip(sample.chance * p, 1e-15, 1 - 1e-15)  # probability of being a known yes
        value = -(weights * (targets * np.log(q) + (1 - targets) * np.log1p(-q))).mean()
        gradient = weights * (q - targets) / (1 - q) * (1 - p)  # by the logit; q - targets if chance and weights are 1
        return float(value), np.array([(gradient * s).mean(), gradient.mean()])

    slope, bias = minimize(loss, np.array([1.0, 0.0]), jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return PlattMap(float(slope / scale), float(bias - slope * center / scale)) if slope > 0 else None


def fit_isotonic(sample: CalibrationSample) -> IsotonicMap | None:
    """Fit a rising step function; None where higher scores do not mean yes."""
    from sklearn.isotonic import IsotonicRegression  # slow to import, and most runs do not need it

    scores = np.concatenate([sample.yes, sample.rest]).astype(np.float64)
    targets = np.repeat([1.0, 0.0], [len(sample.yes), len(sample.rest)])
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, targets, _normalize_weights(sample))
    x, y = fitted.X_thresholds_, fitted.y_thresholds_ / sample.chance
    margin = 1 / (len(scores) + 2)
    return IsotonicMap(tuple(x.tolist()), tuple(np.clip(y, margin, 1 - margin).tolist())) if y[-1] > y[0] else None


def _normalize_weights(sample: CalibrationSample) -> Floats:
    """Weight of each entry, with mean 1."""
    weights = np.repeat([1.0, sample.no_weight], [len(sample.yes), len(sample.rest)])
    return np.asarray(weights / weights.mean())


METHODS: dict[str, Callable[[CalibrationSample], Map | None]] = {"platt": fit_platt, "isotonic": fit_isotonic}


def map_to_dict(map: Map) -> dict[str, Any]:
    """Return plain data for JSON."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in vars(map).items()}


def map_from_dict(values: dict[str, Any]) -> Map:
    """Read what `map_to_dict` wrote."""
    return PlattMap(**values) if "slope" in values else IsotonicMap(tuple(values["x"]), tuple(values["y"]))


def sigmoid(logits: npt.NDArray[np.float32], out: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
    """Compute 1 / (1 + exp(-logits)) so that each entry has the same bits whatever the shape of the array.

    torch is three times as fast as SciPy, but computes the remainder of an array, and of each thread's share of it, in
    another way. It therefore gets chunks without a remainder that it does not share between threads.
    """
    result = np.empty(logits.shape, np.float32) if out is None else out
    flat_logits, flat_result = (torch.from_numpy(array).view(-1) for array in (np.ascontiguousarray(logits), result))
    chunks = zip(flat_logits.split(SINGLE_THREAD_ENTRIES), flat_result.split(SINGLE_THREAD_ENTRIES), strict=True)
    for chunk, place in chunks:
        place.copy_(pad(chunk, (0, -len(chunk) % VECTOR_ENTRIES)).sigmoid_()[: len(chunk)])
    return result
