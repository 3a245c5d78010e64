"""Losses that weigh an entry by how wrong the prediction is. Unknown entries are taken for no, or doubted.

The gradient is that of the value: the weight is differentiated too, as the formulas say.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.errors import within
from partly.losses.basic import cross_entropy
from partly.losses.door import takes_z


@takes_z
def focal(logits: Tensor, z: Tensor, *, gamma: float = 2.0) -> Tensor:
    """Unknown entries are taken for no; each entry counts (1 - p of its target)^gamma. [B, L]"""
    return asymmetric(logits, z, gamma_yes=gamma, gamma_no=gamma, clip=0.0)


@takes_z
def asymmetric(
    logits: Tensor, z: Tensor, *, gamma_yes: float = 0.0, gamma_no: float = 4.0, clip: float = 0.05
) -> Tensor:
    """Focal, with a gamma of its own for no, of which those below p = `clip` do not count at all. [B, L]

    The defaults are those of the paper (Ridnik et al., ICCV 2021).
    """
    within(0, math.inf, gamma_yes=gamma_yes, gamma_no=gamma_no)
    within(0, 0.99, clip=clip)
    return torch.where(z > 0, _focused(logits, gamma_yes), _focused_no(logits, gamma_no, clip))


@takes_z
def partial_asymmetric(
    logits: Tensor,
    z: Tensor,
    *,
    gamma_yes: float = 0.0,
    gamma_no: float = 1.0,
    gamma_unknown: float = 2.0,
    clip: float = 0.0,
    weight_unknown: float = 1.0,
    ignored: Tensor | None = None,
) -> Tensor:
    """`asymmetric`, with a gamma and a weight of its own for unknown entries, some of which are left out. [B, L]

    `ignored`: a mask [B, L] of the entries that do not count.
    """
    within(0, math.inf, gamma_yes=gamma_yes, gamma_no=gamma_no, gamma_unknown=gamma_unknown)
    within(0, math.inf, weight_unknown=weight_unknown)
    within(0, 0.99, clip=clip)
    if ignored is not None:
        logits = torch.where(ignored, 0.0, logits)
    unknown = weight_unknown * _focused_no(logits, gamma_unknown, clip)
    known = torch.where(z > 0, _focused(logits, gamma_yes), _focused_no(logits, gamma_no, clip))
    entries = torch.where(z == 0, unknown, known)
    return entries if ignored is None else torch.where(ignored, 0.0, entries)


@takes_z
def hill(logits: Tensor, z: Tensor, *, height: float = 1.5, margin: float = 1.0, gamma: float = 2.0) -> Tensor:
    """Unknown entries: (height - p) p^2, whose pull fades as p goes to 1. Yes: focal, at `margin` less. [B, L]"""
    within(0, math.inf, gamma=gamma)
    p = torch.sigmoid(logits)
    doubted = torch.where(z == 0, (height - p) * p**2, cross_entropy(logits, torch.zeros_like(z)))
    return torch.where(z > 0, _focused(logits - margin, gamma), doubted)


@takes_z
def splc(logits: Tensor, z: Tensor, *, threshold: float = 0.6, margin: float = 1.0, gamma: float = 2.0) -> Tensor:
    """Focal; unknown entries are yes above p = `threshold`, else no. Known yes: at `margin` less. [B, L]"""
    within(0, math.inf, gamma=gamma)
    within(0, 1, threshold=threshold)
    found = (z == 0) & (torch.sigmoid(logits.detach()) > threshold)
    target = torch.where(z > 0, logits - margin, torch.where(found, logits, -logits))
    return _focused(target, gamma)


def _focused(logits: Tensor, gamma: float) -> Tensor:
    """-(1 - p)^gamma log p: focal, of entries that are yes."""
    # A power by its logarithm has a finite gradient everywhere, for any gamma.
    return torch.exp(gamma * F.logsigmoid(-logits)) * -F.logsigmoid(logits)


def _focused_no(logits: Tensor, gamma: float, clip: float) -> Tensor:
    """-q^gamma log(1 - q), q = max(p - clip, 0): focal, of entries that are no."""
    if not clip:
        return _focused(-logits, gamma)
    shifted = torch.sigmoid(logits) - clip
    counts = shifted > 0
    q = torch.where(counts, shifted, 0.5)  # any number inside: the power of 0 has no finite gradient
    return torch.where(counts, q**gamma * -torch.log1p(-q), 0.0)
