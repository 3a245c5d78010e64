"""Logits as products of an item's place in a small space with a vector for each label, learned or given."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from partly import data
from partly.data.matching import positions
from partly.errors import SettingError
from partly.files import PathLike
from partly.networks.network import Network


def low_rank(places: Network, size: int, labels: int, seed: int) -> Network:
    """`places` makes [B, size] of items; what comes back makes logits [B, L] of that. The vectors follow the seed."""
    vectors = skip_init(nn.Linear, size, labels, bias=False)
    nn.init.normal_(vectors.weight, std=size**-0.5, generator=torch.Generator().manual_seed(seed))
    return Network(places, vectors)


def read_vectors(path: PathLike, names: Sequence[str], size: int) -> Tensor:
    """A vector for each of these labels, [L, size], from a file of features whose ids are the names of labels."""
    vectors = data.read(path)
    if vectors.items.shape != (size,):
        raise SettingError(
            f"{path}: vectors of {vectors.items.shape[0]} numbers for size = {size}. Make the two the same."
        )
    return vectors.items.take(torch.from_numpy(positions(names, vectors.labels.ids, path, "label")))
