"""A batch worked on in parts, where each item by itself takes much memory: what fits into a cache is faster."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


def in_parts(work: Callable[..., Tensor], numbers: int, part: int, kept: float, *batch: Tensor) -> Tensor:
    """What `work` makes of a batch, [B, ...] each, for items that do not hear of each other.

    numbers: held for one item. part: as many of them are worked on at a time. kept: where a batch has more of them,
    they are worked out again for the gradient. An exported graph takes any number of items, and knows no parts.
    """
    if torch.compiler.is_exporting():
        return work(*batch)
    size = max(1, part // numbers)
    parts = zip(*(tensor.split(size) for tensor in batch), strict=True)
    if len(batch[0]) * numbers <= kept:
        return torch.cat([work(*some) for some in parts])
    return torch.cat([checkpoint(work, *some, use_reentrant=False) for some in parts])
