"""The shape that every network has, and its first layer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from partly.items import Statistics


class Network(nn.Module):
    """`features(x)` -> [B, D], then `head(features)` -> logits [B, L]; a method can see both. Where there are maps, and
    the head takes them, features are [B, D, H, W].

    A head whose forward takes (features, z) is also given what is known of the items: z [B, L], or None.
    """

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.head = head
        self.takes_labels = "z" in inspect.signature(head.forward).parameters

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        return self.both(x, z)[1]

    def both(self, x: Tensor, z: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Features [B, D], of maps their mean over all places, and logits [B, L]."""
        features = self.features(x)
        logits = self.head(features, z) if self.takes_labels else self.head(features)
        return features if features.ndim == 2 else features.mean(dim=(2, 3)), logits

    def width(self, shape: tuple[int, ...]) -> int:
        """How many features it makes of items of this shape."""
        with predicting(self), torch.no_grad():
            return int(self.features(torch.zeros(1, *shape)).shape[1])


def placed(features: Tensor) -> Tensor:
    """Maps [B, D, H, W] as they are; features [B, D] as maps of a single place."""
    return features if features.ndim == 4 else features[:, :, None, None]


@contextmanager
def predicting(module: nn.Module) -> Iterator[None]:
    """For a while as it predicts: no dropout, batch normalisation at rest. Each part gets its own mode back."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()  # for a while, and only here, so that nobody forgets to switch back
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


class Standardise(nn.Module):
    """Mean 0 and scale 1 for each feature (or colour channel), as measured once on the training items."""

    mean: Tensor
    inverse_scale: Tensor

    def __init__(self, measured: Statistics, shape: tuple[int, ...]) -> None:
        super().__init__()
        mean, scale = measured.mean, measured.scale
        # A constant feature says nothing: it becomes 0, not noise divided by almost nothing.
        inverse = torch.where(scale > 1e-6 * mean.abs().clamp(min=1e-12), 1.0 / scale, 0.0)
        places = (-1, *[1] * (len(shape) - 1))
        self.register_buffer("mean", mean.view(places).float())
        self.register_buffer("inverse_scale", inverse.view(places).float())

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) * self.inverse_scale
