"""Maps become vectors: what is left of where in a picture something was seen."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from partly.networks.weldon import weldon

Pooling = Literal["gap", "gmp", "gap+gmp", "weldon"]


def pool(maps: Tensor, how: Pooling, k_max: float = 0.1, k_min: float = 0.1) -> Tensor:
    """Maps [B, C, H, W] -> [B, C], or [B, 2 C] where there are two of them: the mean over all places (`gap`), the
    largest value (`gmp`), both side by side, or the largest and the smallest regions (`weldon`, with its k's)."""
    if how == "weldon":
        return weldon(maps, k_max, k_min)
    places = maps.flatten(2)
    if how == "gap":
        return places.mean(dim=2)
    if how == "gmp":
        return places.amax(dim=2)
    return torch.cat([places.mean(dim=2), places.amax(dim=2)], dim=1)


def pooled_width(channels: int, how: Pooling) -> int:
    """How many numbers `pool` makes of so many channels."""
    return 2 * channels if how == "gap+gmp" else channels
