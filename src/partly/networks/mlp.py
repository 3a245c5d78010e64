"""A multi-layer perceptron: two hidden layers of 512 units before the linear read-out.

On features, under a loss that is a weighted cross-entropy of each entry (`bce`, `assume-negative`, ...), a solved
linear path runs next to it, and the held-out loss sets their shares. `solve` = false trains the MLP alone.
"""

from __future__ import annotations

import math

from torch import nn

from partly.errors import within


def head(
    inputs: int, labels: int, *, hidden: int | tuple[int, ...] = (512, 512), dropout: float = 0.5, solve: bool = True
) -> tuple[nn.Module, nn.Module]:
    within(0, 1, dropout=dropout)
    widths = (hidden,) if isinstance(hidden, int) else hidden
    within(1, math.inf, **{f"hidden[{i}]": width for i, width in enumerate(widths)})
    layers: list[nn.Module] = []
    for width in widths:
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout)]
        inputs = width
    return nn.Sequential(*layers), nn.Linear(inputs, labels)
