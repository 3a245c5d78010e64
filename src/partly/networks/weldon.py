"""WELDON: a linear map per label on the maps of the backbone, scored by its highest and lowest regions.

Items without maps have a single position, for which the head is linear.

Reference
    T. Durand, N. Thome, M. Cord. WELDON: Weakly Supervised Learning of Deep Convolutional Neural Networks. CVPR 2016.

Defaults
    A tenth of the positions, as in Durand, Mehrasa and Mori (CVPR 2019).
"""

from __future__ import annotations

from torch import Tensor, nn

from partly.errors import SettingError
from partly.networks.network import as_maps
from partly.registry import About

ABOUT = About(takes_maps=True)


def weldon(maps: Tensor, k_max: float, k_min: float) -> Tensor:
    """Return the mean of the k_max largest and the k_min smallest values of each map, averaged: [B, L].

    Below 1, k is a share of the H x W positions (at least one), else their number. k_min = 0 uses only the largest.

    Parameters
    ----------
    maps : Tensor, [B, L, H, W]
        One map per label.
    k_max, k_min : float
        Number or share of positions.

    Returns
    -------
    Tensor, [B, L]
        A logit per label.

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
