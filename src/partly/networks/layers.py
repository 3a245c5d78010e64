"""Building blocks that several networks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init
from torch.utils.checkpoint import checkpoint

from partly.networks.network import Network
from partly.networks.weldon import weldon

Pooling = Literal["gap", "gmp", "gap+gmp", "weldon"]


class FeatureUnion(nn.Module):
    """Concatenate several kinds of features: [B, sum of widths].

    A linear layer on top is a sum of one layer per kind, so a solver can fit the kinds one by one.
    """

    def __init__(self, parts: Mapping[str, nn.Module], widths: Mapping[str, int]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.spans: dict[str, slice] = {}
        start = 0
        for name, width in widths.items():
            self.spans[name] = slice(start, start + width)
            start += width
        self.width = start
        self.is_identity = [type(part) for part in parts.values()] == [nn.Identity]

    def forward(self, x: Tensor) -> Tensor:
        if self.is_identity:  # saves the calls, which take as long as a step of a linear head
            return x
        features = [part(x) for part in self.parts.values()]
        return features[0] if len(features) == 1 else torch.cat(features, dim=1)


def apply_in_chunks(
    function: Callable[..., Tensor], numbers: int, chunk: int, checkpoint_above: float, *batch: Tensor
) -> Tensor:
    """Apply a function to a batch in chunks that fit into a cache. The items must be independent of each other.

    Parameters
    ----------
    numbers : int
        Numbers that the function holds per item.
    chunk : int
        Numbers per chunk.
    checkpoint_above : float
        Numbers in a batch above which activations are recomputed for the gradient.
    """
    if torch.compiler.is_exporting():  # an exported graph takes any number of items
        return function(*batch)
    size = max(1, chunk // numbers)
    chunks = zip(*(tensor.split(size) for tensor in batch), strict=True)
    if len(batch[0]) * numbers <= checkpoint_above:
        return torch.cat([function(*inputs) for inputs in chunks])
    return torch.cat([checkpoint(function, *inputs, use_reentrant=False) for inputs in chunks])


def low_rank_network(embedding: Network, size: int, labels: int, seed: int) -> Network:
    """Add a vector per label to a network that embeds items, [B, size]. Logits are the inner products, [B, L]."""
    vectors = skip_init(nn.Linear, size, labels, bias=False)
    nn.init.normal_(vectors.weight, std=size**-0.5, generator=torch.Generator().manual_seed(seed))
    return Network(embedding, vectors)


def pool(maps: Tensor, how: Pooling, k_max: float = 0.1, k_min: float = 0.1) -> Tensor:
    """Pool maps [B, C, H, W] to [B, C], or [B, 2 C] for "gap+gmp".

    "gap" averages all positions, "gmp" takes the maximum, "gap+gmp" concatenates both, and "weldon" averages the
    largest and the smallest regions.
    """
    if how == "weldon":
        return weldon(maps, k_max, k_min)
    positions = maps.flatten(2)
    if how == "gap":
        return positions.mean(dim=2)
    if how == "gmp":
        return positions.amax(dim=2)
    return torch.cat([positions.mean(dim=2), positions.amax(dim=2)], dim=1)


def count_pooled(channels: int, how: Pooling) -> int:
    """Return the number of features that `pool` makes."""
    return 2 * channels if how == "gap+gmp" else channels
