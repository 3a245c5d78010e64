"""The shape that every network has, and its first layer."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Network(nn.Module):
    """`features(x)` -> [B, D], then `head(features)` -> logits [B, L]; a method can see both.

    A head whose forward takes (features, z) also hears what is known of the items: z [B, L], or None.
    """

    def __init__(self, features: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.head = head
        self.hears = "z" in inspect.signature(head.forward).parameters

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        return self.both(x, z)[1]

    def both(self, x: Tensor, z: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Features [B, D] and logits [B, L]."""
        features = self.features(x)
        return features, self.head(features, z) if self.hears else self.head(features)

    def width(self, x: Tensor) -> int:
        """How many features it makes of such items."""
        with predicting(self), torch.no_grad():
            return int(self.features(x[:1]).shape[1])


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
    rate: Tensor

    def __init__(self, x: Tensor) -> None:
        super().__init__()
        dims = [d for d in range(x.ndim) if d != 1]
        count = x.numel() / x.shape[1]
        parts = x.split(max(1, 2**22 // x[0].numel()))  # bounded memory: the sums are in float64
        mean = torch.stack([part.sum(dim=dims, dtype=torch.float64) for part in parts]).sum(dim=0) / count
        squares = [((part.double() - _shaped(mean, x)) ** 2).sum(dim=dims) for part in parts]
        scale = (torch.stack(squares).sum(dim=0) / count).sqrt()
        # A constant feature says nothing: it becomes 0, not noise divided by almost nothing.
        rate = torch.where(scale > 1e-6 * mean.abs().clamp(min=1e-12), 1.0 / scale, 0.0)
        self.register_buffer("mean", _shaped(mean, x).float())
        self.register_buffer("rate", _shaped(rate, x).float())

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) * self.rate


def _shaped(values: Tensor, x: Tensor) -> Tensor:
    return values.view(-1, *[1] * (x.ndim - 2)) if x.ndim > 2 else values
