"""WELDON pooling: a label's score is where its map is highest and where it is lowest.

Paper: T. Durand, N. Thome, M. Cord. WELDON: Weakly Supervised Learning of Deep Convolutional Neural Networks. CVPR
2016.
"""

from __future__ import annotations

from torch import Tensor

from partly.errors import SettingError


def weldon(maps: Tensor, k_max: float, k_min: float) -> Tensor:
    """Maps [B, L, H, W] -> logits [B, L]: half of the mean of the k_max largest values and of the k_min smallest.

    Below 1, k is a share of the H x W places (one at least), from 1 on a number of places. With k_min = 0 it is the
    mean of the largest alone.
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
