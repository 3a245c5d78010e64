"""Losses that are a weighted cross-entropy, as what they are made of: (weights, targets) of z, [B, L] each.

The loss of an entry is its weight times the cross-entropy of its logit with its target. Such a loss is convex in the
logits, so that a linear head under it can be solved.
"""

from __future__ import annotations

import torch
from torch import Tensor

from partly.losses.basic import known_weight

Terms = tuple[Tensor, Tensor]


def bce(z: Tensor) -> Terms:
    return (z != 0).float(), (z > 0).float()


def assume_negative(z: Tensor) -> Terms:
    return torch.ones_like(z, dtype=torch.float32), (z > 0).float()


def partial_bce(
    z: Tensor,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    gamma: float = 1.0,
    p0: float = 0.1,
    value: float = 5.0,
    paper_rounding: bool = False,
) -> Terms:
    weights, targets = bce(z)
    return weights * known_weight(z, alpha, beta, gamma, p0, value, paper_rounding, torch.float32), targets


def down_weight(z: Tensor, *, weight: float = 0.05) -> Terms:
    return torch.where(z == 0, weight, 1.0), (z > 0).float()


def weak_assume_negative(z: Tensor) -> Terms:
    return down_weight(z, weight=1.0 / max(z.shape[1] - 1, 1))


def label_smoothing(z: Tensor, *, smoothing: float = 0.1) -> Terms:
    weights, targets = assume_negative(z)
    return weights, targets * (1 - 2 * smoothing) + smoothing


def negative_label_smoothing(z: Tensor, *, smoothing: float = 0.1) -> Terms:
    return torch.ones_like(z, dtype=torch.float32), torch.where(z == 0, smoothing, (z > 0).float())


def one_class(z: Tensor, *, weight: float = 0.03) -> Terms:
    return torch.where(z == 0, weight, 1.0), (z >= 0).float()
