"""Weights and targets, [B, L] each, of the losses that are a weighted cross-entropy.

The loss of an entry is its weight times the cross-entropy with its target. It is convex in the logits, so a linear head
can be solved. The losses are derived from these functions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from partly.errors import SettingError, within

Terms = tuple[Tensor, Tensor]


def bce(z: Tensor, *, dtype: torch.dtype = torch.float32) -> Terms:
    return (z != 0).to(dtype), (z > 0).to(dtype)


def assume_negative(z: Tensor, *, dtype: torch.dtype = torch.float32) -> Terms:
    return torch.ones_like(z, dtype=dtype), (z > 0).to(dtype)


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
    return weights * compute_known_weight(z, alpha, beta, gamma, p0, value, paper_rounding, torch.float32), targets


def down_weight(z: Tensor, *, weight: float = 0.05, dtype: torch.dtype = torch.float32) -> Terms:
    within(0, math.inf, weight=weight)
    return _unknown_weight(z, weight, dtype), (z > 0).to(dtype)


def weak_assume_negative(z: Tensor, *, dtype: torch.dtype = torch.float32) -> Terms:
    return down_weight(z, weight=1.0 / max(z.shape[1] - 1, 1), dtype=dtype)


def label_smoothing(z: Tensor, *, smoothing: float = 0.1, dtype: torch.dtype = torch.float32) -> Terms:
    within(0, 0.5, smoothing=smoothing)
    weights, targets = assume_negative(z, dtype=dtype)
    return weights, targets * (1 - 2 * smoothing) + smoothing


def negative_label_smoothing(z: Tensor, *, smoothing: float = 0.1, dtype: torch.dtype = torch.float32) -> Terms:
    within(0, 1, smoothing=smoothing)
    weights, targets = assume_negative(z, dtype=dtype)
    return weights, torch.where(z == 0, smoothing, targets)


def one_class(z: Tensor, *, weight: float = 0.03, dtype: torch.dtype = torch.float32) -> Terms:
    return _unknown_weight(z, weight, dtype), (z >= 0).to(dtype)


def _unknown_weight(z: Tensor, weight: float, dtype: torch.dtype) -> Tensor:
    """Return `weight` for unknown entries and 1 for known ones."""
    return torch.ones_like(z, dtype=dtype).masked_fill_(z == 0, weight)


def compute_known_weight(
    z: Tensor,
    alpha: float | None,
    beta: float | None,
    gamma: float,
    p0: float,
    value: float,
    paper_rounding: bool,
    dtype: torch.dtype,
) -> Tensor:
    """Return g(p) of each item, [B, 1]; see `losses.partial_bce`."""
    if paper_rounding:
        alpha, beta = -4.45, 5.45
    elif alpha is None or beta is None:
        alpha, beta = normalization_coefficients(p0, value, gamma)
    share = (z != 0).sum(dim=1, keepdim=True) / z.shape[1]
    # An item without known entries has no loss, even if g(0) is infinite (gamma < 0).
    return alpha * torch.where(share > 0, share, 1.0).to(dtype) ** gamma + beta


def normalization_coefficients(p0: float, value: float, gamma: float) -> tuple[float, float]:
    """Return (alpha, beta) with g(p0) = value and g(1) = 1, for g(p) = alpha p^gamma + beta."""
    if not 0 < p0 < 1 or gamma == 0:
        raise SettingError(f"g(p0) = value needs 0 < p0 < 1 and gamma other than 0; got p0 = {p0}, gamma = {gamma}.")
    alpha = (value - 1.0) / (p0**gamma - 1.0)
    return alpha, 1.0 - alpha
