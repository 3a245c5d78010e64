"""A multi-layer perceptron: two hidden layers of 512 before the linear read-out."""

from __future__ import annotations

from torch import nn


def head(
    inputs: int, labels: int, *, hidden: tuple[int, ...] = (512, 512), dropout: float = 0.5
) -> tuple[nn.Module, nn.Module]:
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout)]
        inputs = width
    return nn.Sequential(*layers), nn.Linear(inputs, labels)
