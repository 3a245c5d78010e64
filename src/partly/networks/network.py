"""The shape that every network has, and its first layer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from partly.items import Statistics
from partly.processes.share import Share


class Network(nn.Module):
    """`features(x)` -> [B, D], then `head(features)` -> logits [B, L]; a method can see both.

    A head whose forward takes (features, z) is also given what is known of the items: z [B, L], or None. Of a share of
    a batch it makes what it would make of the whole batch, z being that of the whole.
    """

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.head = head
        self.takes_labels = "z" in inspect.signature(head.forward).parameters

    def forward(self, x: Tensor | Share, z: Tensor | None = None) -> Tensor:
        logits: Tensor = x.spread(self, z) if isinstance(x, Share) else self.both(x, z)[1]
        return logits

    def both(self, x: Tensor | Share, z: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Features [B, D] and logits [B, L]."""
        if isinstance(x, Share):
            features, logits = x.spread(self.both, z)
            return features, logits
        features = self.features(x)
        return features, self.head(features, z) if self.takes_labels else self.head(features)

    def embed(self, x: Tensor | Share) -> Tensor:
        """Features [B, D] alone."""
        features: Tensor = x.spread(lambda own, _: self.features(own)) if isinstance(x, Share) else self.features(x)
        return features

    def width(self, shape: tuple[int, ...]) -> int:
        """How many features it makes of items of this shape."""
        with predicting(self), torch.no_grad():
            return int(self.features(torch.zeros(1, *shape)).shape[1])


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
