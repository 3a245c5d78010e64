"""Logits as products of an item's place in a small space with a vector for each label, learned or given."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import skip_init

from partly.networks.network import Network


def low_rank(places: Network, size: int, labels: int, seed: int) -> Network:
    """`places` makes [B, size] of items; what comes back makes logits [B, L] of that. The vectors follow the seed."""
    vectors = skip_init(nn.Linear, size, labels, bias=False)
    nn.init.normal_(vectors.weight, std=size**-0.5, generator=torch.Generator().manual_seed(seed))
    return Network(places, vectors)
