"""Linear and kernel features: the features themselves, and their similarity to landmark items under two kernels.

A Gaussian kernel compares standardized features, a Laplace kernel compares their normal scores. The linear and the
Gaussian features come twice: standardized, and at the scale of the input, which matters for principal components and
counts.

Under a loss that is a weighted cross-entropy of each entry (`bce`, `assume-negative`, ...), each kind is solved
separately and weighted by its held-out loss. `solve` = false trains all kinds together, step by step.

The kernel features are Nystroem features: the similarities to the landmarks, which are random training items, along
their principal axes. They are fixed, so the loss of the linear layer on top is convex.

Reference
    C. K. I. Williams, M. Seeger. Using the Nystroem Method to Speed Up Kernel Machines. NIPS 2000.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor, nn

from partly.errors import within
from partly.networks.layers import FeatureUnion, apply_in_chunks

MAX_EXAMPLE_NUMBERS = 1 << 26  # held at a time
MAX_L1_FEATURES = 400  # above it the Laplace kernel uses Euclidean distances, which are faster
MAX_L1_ITEMS = 5000  # training items; from here on too
LANDMARKS = 1500
AXES = 600
QUANTILES = 200
SAMPLE = 10_000  # items used to measure quantiles
CLIP = 8.0  # of standardized features, so that one extreme value does not dominate distances
NORMAL_CLIP, NORMAL_RANGE = 3.0, 4.0  # of normal scores, before and after standardization
MIN_AXIS = 1e-6  # relative to the largest axis; shorter ones are dropped
DISTANCE_CHUNK = 256  # items per chunk of distances


class Clip(nn.Module):
    """Clip standardized features to [-CLIP, CLIP]."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(-CLIP, CLIP)


class Rescale(nn.Module):
    """Restore the scales [D] of standardized features, up to one common factor."""

    factor: Tensor

    def __init__(self, scales: Tensor) -> None:
        super().__init__()
        common = (scales.double() ** 2).mean().sqrt().clamp(min=1e-30)
        self.register_buffer("factor", (scales.double() / common).float())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class NormalScores(nn.Module):
    """Map each feature to the normal quantile of its rank among the training items. Monotone transforms do not matter.
    Tied values get the mean of their ranks."""

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
        """Return the relative rank of values [D, B] among the marks; equal marks count as passed if `right`."""
        count = self.marks.shape[1]
        if count == 1:
            return torch.full_like(values, 0.5)
        after = torch.searchsorted(self.marks, values, right=right).clamp(1, count - 1)
        low, high = self.marks.gather(1, after - 1), self.marks.gather(1, after)
        share = ((values - low) / (high - low).clamp(min=1e-30)).clamp(0, 1)
        if right:  # the largest value has passed every mark, even if tied
            share = torch.where(values >= high, 1.0, share)
        return (after - 1 + share) / (count - 1)


class Nystroem(nn.Module):
    """Nystroem features of the kernel exp(-distance / median distance), with landmarks [M, D].

    power: 2 for |x - y|^2 (Gaussian kernel), 1 for |x - y|. norm: 1 for the sum of absolute differences. axes: number
    of features; those beyond the rank of the landmarks are 0. Without landmarks (`drop`) all features are 0.
    """

    landmarks: Tensor
    width: Tensor
    axes: Tensor  # [M, R]
    mean: Tensor  # [R]
    euclidean: Tensor  # 1; only where the width of the items would suggest sums of absolute differences

    def __init__(self, landmarks: Tensor, axes: int, power: int = 2, norm: int = 2) -> None:
        super().__init__()
        self.power, self.norm = power, norm
        count = len(landmarks)
        self.register_buffer("landmarks", landmarks.contiguous())
        self.register_buffer("width", torch.ones(()))
        self.register_buffer("axes", torch.zeros(count, min(axes, count)))
        self.register_buffer("mean", torch.zeros(min(axes, count)))
        if power == 1 and norm == 2 and landmarks.shape[1] <= MAX_L1_FEATURES:
            self.register_buffer("euclidean", torch.ones(()))
        if landmarks.any():
            self._fit()

    def _fit(self) -> None:
        distance = self._distance(self.landmarks)
        apart = distance[tuple(np.triu_indices(len(distance), 1))]
        if len(apart) and apart.median() > 0:
            self.width.copy_(apart.median())
        near = torch.exp(-distance / self.width).numpy()
        values, vectors = scipy.linalg.eigh(near, driver="evd", check_finite=False)
        axes = np.flatnonzero(values > MIN_AXIS * values[-1])[::-1][: self.axes.shape[1]]
        self.axes[:, : len(axes)] = torch.from_numpy((vectors[:, axes] / np.sqrt(values[axes])).astype(np.float32))
        features = torch.from_numpy(near) @ self.axes
        self.mean.copy_(features.mean(dim=0))
        scale = ((features - self.mean) ** 2).sum(dim=1).mean().clamp(min=1e-12)
        factor = (len(axes) / scale).sqrt()  # features have mean square 1 on average
        self.axes.mul_(factor)
        self.mean.mul_(factor)

    def drop(self) -> None:
        """Drop the landmarks, where nothing reads the features."""
        self.landmarks, self.axes = self.landmarks[:0].clone(), self.axes[:0].clone()
        self.mean.zero_()

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        if not len(state_dict.get(f"{prefix}landmarks", self.landmarks)):
            self.drop()
        if "euclidean" in self._buffers:  # a run of an earlier version has none
            saved = state_dict.setdefault(f"{prefix}euclidean", torch.zeros(()))
            self.norm = 2 if saved.any() else 1
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, x: Tensor) -> Tensor:
        if not len(self.landmarks):
            return x.new_zeros(x.shape[0], self.mean.shape[0])
        return apply_in_chunks(self._near, 1, DISTANCE_CHUNK, math.inf, x) @ self.axes - self.mean

    def _near(self, x: Tensor) -> Tensor:
        return torch.exp(-self._distance(x) / self.width)

    def _distance(self, x: Tensor) -> Tensor:
        if self.norm == 1:
            return torch.cdist(x, self.landmarks, p=1.0)
        squares = (x * x).sum(dim=1)[:, None] + (self.landmarks * self.landmarks).sum(dim=1) - 2 * x @ self.landmarks.T
        squares = squares.clamp(min=0)
        return squares if self.power == 2 else squares.sqrt()


def head(
    inputs: int,
    labels: int,
    examples: Callable[[int], Tensor],
    scales: Tensor,
    *,
    landmarks: int = LANDMARKS,
    axes: int = AXES,
    solve: bool = True,
) -> tuple[nn.Module, nn.Module]:
    within(1, math.inf, landmarks=landmarks, axes=axes)
    room = max(1, MAX_EXAMPLE_NUMBERS // inputs)
    some, sample = examples(min(landmarks, room)), examples(min(SAMPLE, room))
    normal, absolute = NormalScores(sample), inputs <= MAX_L1_FEATURES and len(sample) < MAX_L1_ITEMS
    raw, clipped = Rescale(scales), Clip()
    kinds = {
        "linear": nn.Identity(),
        "linear_raw": raw,
        "gaussian": nn.Sequential(clipped, Nystroem(clipped(some), axes)),
        "gaussian_raw": nn.Sequential(raw, clipped, Nystroem(clipped(raw(some)), axes)),
        "laplace": nn.Sequential(normal, Nystroem(normal(some), axes, power=1, norm=1 if absolute else 2)),
    }
    widths = {name: inputs if name.startswith("linear") else min(axes, len(some)) for name in kinds}
    members = FeatureUnion(kinds, widths)
    return members, nn.Linear(members.width, labels)
