"""A map for each label, linear in the maps of the backbone: its score is where it is highest and where it is lowest.

Paper: T. Durand, N. Thome, M. Cord. WELDON: Weakly Supervised Learning of Deep Convolutional Neural Networks. CVPR
2016.

Defaults: a tenth of the places, as in Durand, Mehrasa and Mori (CVPR 2019). Items without maps are a single place, and
the head is linear.
"""

from __future__ import annotations

from torch import Tensor, nn

from partly.errors import SettingError
from partly.networks.network import as_maps
from partly.registry import About

ABOUT = About(takes_maps=True)


def weldon(maps: Tensor, k_max: float, k_min: float) -> Tensor:
    """Maps [B, L, H, W] -> logits [B, L]: half of the mean of the k_max largest values and of the k_min smallest.

    Below 1, k is a share of the H x W places (one at least), from 1 on a number of places. With k_min = 0 it is the
    mean of the largest alone.

    Parameters
    ----------
    maps : Tensor, [B, L, H, W]
        One for each label.
    k_max, k_min : float
        How many places, or which share of them.

    Returns
    -------
    Tensor, [B, L]
        A logit of each label.

    Examples
    --------
    >>> import torch
    >>> from partly.networks import weldon
    >>> weldon(torch.arange(4.0).reshape(1, 1, 2, 2), k_max=1, k_min=1)
    tensor([[1.5000]])
    """
    places = maps.flatten(2)
    most, least = (_count(k, places.shape[2]) for k in (k_max, k_min))
    if not most:
        raise SettingError(f"k_max = {k_max} must be above 0: a share of the places, or a number of them.")
    largest = places.topk(most, dim=2, sorted=False).values.mean(dim=2)
    if not least:
        return largest
    return (largest + places.topk(least, dim=2, largest=False, sorted=False).values.mean(dim=2)) / 2


def _count(k: float, places: int) -> int:
    if not (0 <= k < 1 or k in range(1, places + 1)):
        raise SettingError(f"k = {k} must be a share below 1, or a whole number of the {places} places of a map.")
    return max(1, round(k * places)) if 0 < k < 1 else int(k)


class LabelMaps(nn.Module):
    """Maps [B, inputs, H, W] or features [B, inputs] -> logits [B, L]."""

    def __init__(self, inputs: int, labels: int, k_max: float, k_min: float) -> None:
        super().__init__()
        self.maps = nn.Conv2d(inputs, labels, 1)
        self.regions = k_max, k_min

    def forward(self, features: Tensor) -> Tensor:
        return weldon(self.maps(as_maps(features)), *self.regions)


def head(inputs: int, labels: int, *, k_max: float = 0.1, k_min: float = 0.1) -> tuple[nn.Module, nn.Module]:
    return nn.Identity(), LabelMaps(inputs, labels, k_max, k_min)
