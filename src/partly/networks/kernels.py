"""Fixed non-linear features: a kernel on few landmarks (Nystroem), in its principal axes. What follows stays convex.

The landmarks are training items, picked at random; a feature is how near an item is to them, in the directions along
which the landmarks differ most (Williams and Seeger, NIPS 2000).
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
import torch
from torch import Tensor, nn

from partly.networks.in_parts import in_parts

LANDMARKS = 1500
AXES = 600
QUANTILES = 200
SAMPLE = 10_000  # items by which quantiles are measured
CLIP = 8.0  # of standardised features: one extreme value shall not be far from everything
NORMAL_CLIP, NORMAL_RANGE = 3.0, 4.0  # of normal scores, before and after they are standardised
SMALLEST = 1e-6  # of the largest axis: shorter ones are left out
PARTS = 256  # items of which distances are worked out at a time


class Clipped(nn.Module):
    """Standardised features, no value further than `CLIP` from the mean."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(-CLIP, CLIP)


class Rescaled(nn.Module):
    """Standardised features with the scales [D] that they came with, but for one common factor."""

    factor: Tensor

    def __init__(self, scales: Tensor) -> None:
        super().__init__()
        common = (scales.double() ** 2).mean().sqrt().clamp(min=1e-30)
        self.register_buffer("factor", (scales.double() / common).float())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class NormalScores(nn.Module):
    """Each feature by its place among the training items, spread as a normal variable is: what a monotone change of a
    feature cannot alter. Values that many items share stand in the middle of their places."""

    marks: Tensor  # [D, Q], quantiles of each feature
    mean: Tensor
    inverse_scale: Tensor

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        count = min(QUANTILES, len(x))
        places = np.linspace(0, 1, count)
        marks = torch.from_numpy(np.quantile(x.numpy(), places, axis=0, method="nearest").astype(np.float32).T.copy())
        self.register_buffer("marks", marks)
        self.register_buffer("mean", torch.zeros(x.shape[1]))
        self.register_buffer("inverse_scale", torch.ones(x.shape[1]))
        scores = self._scores(x)
        scale = scores.std(dim=0, correction=0)
        self.mean.copy_(scores.mean(dim=0))
        self.inverse_scale.copy_(torch.where(scale > 1e-6, 1.0 / scale, 0.0))

    def forward(self, x: Tensor) -> Tensor:
        return ((self._scores(x) - self.mean) * self.inverse_scale).clamp(-NORMAL_RANGE, NORMAL_RANGE)

    def _scores(self, x: Tensor) -> Tensor:
        values = x.T.contiguous()
        low, high = (self._place(values, right) for right in (False, True))
        place = ((low + high) / 2).clamp(1e-6, 1 - 1e-6)
        scores: Tensor = torch.special.ndtri(place).clamp(-NORMAL_CLIP, NORMAL_CLIP).T
        return scores

    def _place(self, values: Tensor, right: bool) -> Tensor:
        """Between which marks each value [D, B] lies, as a share of all of them; equal marks count as passed where
        `right`."""
        count = self.marks.shape[1]
        if count == 1:
            return torch.full_like(values, 0.5)
        after = torch.searchsorted(self.marks, values, right=right).clamp(1, count - 1)
        low, high = self.marks.gather(1, after - 1), self.marks.gather(1, after)
        share = ((values - low) / (high - low).clamp(min=1e-30)).clamp(0, 1)
        if right:  # the largest value, however many items share it, has passed every mark
            share = torch.where(values >= high, 1.0, share)
        return (after - 1 + share) / (count - 1)


class Nystroem(nn.Module):
    """Features of a kernel exp(-distance / median distance) with landmarks [M, D].

    `power`: the distance is |x - y|^2 (2, the Gaussian kernel), |x - y| (1); `norm` 1 takes the sum of absolute
    differences instead. As many axes as asked for; those that the landmarks do not have are 0.
    """

    landmarks: Tensor
    width: Tensor
    axes: Tensor  # [M, R]
    mean: Tensor  # [R]

    def __init__(self, landmarks: Tensor, axes: int, power: int = 2, norm: int = 2) -> None:
        super().__init__()
        self.power, self.norm = power, norm
        count = len(landmarks)
        self.register_buffer("landmarks", landmarks.contiguous())
        self.register_buffer("width", torch.ones(()))
        self.register_buffer("axes", torch.zeros(count, min(axes, count)))
        self.register_buffer("mean", torch.zeros(min(axes, count)))
        if landmarks.any():
            self._fit()

    def _fit(self) -> None:
        distance = self._distance(self.landmarks)
        apart = distance[tuple(np.triu_indices(len(distance), 1))]
        if len(apart) and apart.median() > 0:
            self.width.copy_(apart.median())
        near = torch.exp(-distance / self.width).numpy()
        values, vectors = scipy.linalg.eigh(near, driver="evd", check_finite=False)
        kept = np.flatnonzero(values > SMALLEST * values[-1])[::-1][: self.axes.shape[1]]
        self.axes[:, : len(kept)] = torch.from_numpy((vectors[:, kept] / np.sqrt(values[kept])).astype(np.float32))
        features = torch.from_numpy(near) @ self.axes
        self.mean.copy_(features.mean(dim=0))
        scale = ((features - self.mean) ** 2).sum(dim=1).mean().clamp(min=1e-12)
        factor = (len(kept) / scale).sqrt()  # so that a feature has mean square 1 on average
        self.axes.mul_(factor)
        self.mean.mul_(factor)

    def forward(self, x: Tensor) -> Tensor:
        return in_parts(self._near, 1, PARTS, math.inf, x) @ self.axes - self.mean

    def _near(self, x: Tensor) -> Tensor:
        return torch.exp(-self._distance(x) / self.width)

    def _distance(self, x: Tensor) -> Tensor:
        if self.norm == 1:
            return torch.cdist(x, self.landmarks, p=1.0)
        squares = (x * x).sum(dim=1)[:, None] + (self.landmarks * self.landmarks).sum(dim=1) - 2 * x @ self.landmarks.T
        squares = squares.clamp(min=0)
        return squares if self.power == 2 else squares.sqrt()
