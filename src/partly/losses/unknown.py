"""Losses that give unknown entries a term of their own. Known entries have their binary cross-entropy."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from partly import selection
from partly.errors import within
from partly.losses import terms
from partly.losses.basic import assume_negative, bce, cross_entropy, weighted_cross_entropy
from partly.losses.door import takes_z

# -------------------------------------------------------------------- a weaker no


@takes_z
def down_weight(logits: Tensor, z: Tensor, *, weight: float = 0.05) -> Tensor:
    """Unknown entries are taken for no, at a constant weight. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    weight : float
        How much an unknown entry counts, beside 1 for a known one.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.down_weight(logits, z)
    tensor([[0.1269, 0.0157, 0.9741]])
    """
    return weighted_cross_entropy(logits, *terms.down_weight(z, weight=weight, dtype=logits.dtype))


@takes_z
def weak_assume_negative(logits: Tensor, z: Tensor) -> Tensor:
    """`down_weight` with 1 / (L - 1): all unknown entries of an item weigh about as much as its one yes. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.weak_assume_negative(logits, z)
    tensor([[0.1269, 0.1566, 0.9741]])
    """
    return weighted_cross_entropy(logits, *terms.weak_assume_negative(z, dtype=logits.dtype))


@takes_z
def label_smoothing(logits: Tensor, z: Tensor, *, smoothing: float = 0.1) -> Tensor:
    """Unknown entries are taken for no; every target lies `smoothing` away from 0 or 1. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    smoothing : float
        How far targets lie from 0 and 1.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.label_smoothing(logits, z)
    tensor([[0.3269, 0.4133, 0.9241]])
    """
    return weighted_cross_entropy(logits, *terms.label_smoothing(z, smoothing=smoothing, dtype=logits.dtype))


@takes_z
def negative_label_smoothing(logits: Tensor, z: Tensor, *, smoothing: float = 0.1) -> Tensor:
    """Unknown entries have the target `smoothing`; known ones their own, 1 or 0. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    smoothing : float
        The target of unknown entries.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.negative_label_smoothing(logits, z)
    tensor([[0.1269, 0.4133, 0.9741]])
    """
    return weighted_cross_entropy(logits, *terms.negative_label_smoothing(z, smoothing=smoothing, dtype=logits.dtype))


# -------------------------------------------------------------------- entropy


def binary_entropy(logits: Tensor) -> Tensor:
    """H(p) = -p log p - (1 - p) log(1 - p) of p = sigmoid(logits), to full precision at both ends. [B, L]"""
    size = logits.abs()
    return size * torch.sigmoid(-size) - F.logsigmoid(size)


@takes_z
def entropy_maximization(logits: Tensor, z: Tensor, *, alpha: float = 0.1) -> Tensor:
    """Unknown entries are drawn towards p = 1/2: their term is -alpha H(p). [B, L]

    The default is that of the paper for COCO and NUS-WIDE (Zhou et al., ECCV 2022; VOC: 0.2).

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    alpha : float
        The weight of the entropy of unknown entries.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.entropy_maximization(logits, z)
    tensor([[ 0.1269, -0.0582,  0.9741]])
    """
    return torch.where(z == 0, -alpha * binary_entropy(logits), assume_negative(logits, z))


@takes_z
def entropy_minimization(logits: Tensor, z: Tensor, *, weight: float = 1.0) -> Tensor:
    """Unknown entries are pushed away from p = 1/2, to whichever side they lean: their term is weight H(p). [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    weight : float
        The weight of the entropy of unknown entries.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.entropy_minimization(logits, z)
    tensor([[0.1269, 0.5822, 0.9741]])
    """
    return entropy_maximization(logits, z, alpha=-weight)


# -------------------------------------------------------------------- how many yes an item has


@takes_z
def expected_positive(logits: Tensor, z: Tensor, *, expected_yes: float | None = None) -> Tensor:
    """`bce`, and a penalty that keeps the predicted number of yes per item near `expected_yes`. [B, L]

    None: `yes_per_item` of the batch.

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    expected_yes : float, optional
        How many yes an item has; without it, what the batch lets guess.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.expected_positive(logits, z)
    tensor([[0.1352, 0.0082, 0.9823]])
    """
    if expected_yes is None:
        expected_yes = yes_per_item(int((z > 0).sum()), int((z < 0).sum()), *z.shape)
    return bce(logits, z) + count_penalty(logits, expected_yes)


def count_penalty(logits: Tensor, expected_yes: float | Tensor) -> Tensor:
    """((mean over items of the sum of p) - expected_yes)^2 / L^2, one number."""
    return ((torch.sigmoid(logits).sum(dim=1).mean() - expected_yes) / logits.shape[1]) ** 2


def yes_per_item(yes: int, no: int, items: int, labels: int) -> float:
    """How many yes an item has, guessed from the numbers of known entries.

    Where some entries are known to be no: L times the share of yes among what is known, as if it were known by
    chance. Where only yes is known: known yes per item, which is the least that there can be.
    """
    return labels * yes / (yes + no) if no else yes / max(items, 1)


# -------------------------------------------------------------------- yes or no, as the predictions say


@takes_z
def generalized_robust(
    logits: Tensor,
    z: Tensor,
    *,
    slope: float = 2.0,
    offset: float = -2.0,
    centre: float = 0.8,
    width: float = 0.5,
    yes_power: float = 0.01,
    no_power: float = 1.0,
) -> Tensor:
    """Unknown entries are a mixture of yes and no, weighted; their terms are robust powers. [B, L]

    An unknown entry is a yes with probability k = sigmoid(slope p + offset), and counts with weight
    v = exp(-(p - centre)^2 / (2 width^2)): v (k (1 - p^q) / q + (1 - k) (1 - (1 - p)^r) / r), q = yes_power,
    r = no_power. No gradient flows through k and v. The defaults are where the authors end on VOC (Chen et al., IJCAI
    2024).

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    slope, offset : float
        Of the chance that an unknown entry is yes.
    centre, width : float
        Of the weight of an unknown entry.
    yes_power, no_power : float
        Of the two robust terms; towards 0 they are cross-entropy, at 1 the absolute error.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.generalized_robust(logits, z)
    tensor([[0.1269, 0.2639, 0.9741]])
    """
    within(1e-6, math.inf, width=width, yes_power=yes_power, no_power=no_power)
    p = torch.sigmoid(logits.detach())
    mixture = torch.sigmoid(slope * p + offset)
    weight = torch.exp(-((p - centre) ** 2) / (2 * width**2))
    # p^q = exp(q log p); expm1 keeps the digits where q is small.
    yes = -torch.expm1(yes_power * F.logsigmoid(logits)) / yes_power
    no = -torch.expm1(no_power * F.logsigmoid(-logits)) / no_power
    return torch.where(z == 0, weight * (mixture * yes + (1 - mixture) * no), assume_negative(logits, z))


@takes_z
def large_loss(logits: Tensor, z: Tensor, *, share: float = 0.02, correct: bool = False) -> Tensor:
    """Unknown entries are taken for no, but for the share of them that fits worst: left out, or taken for yes. [B, L]

    The share is of the unknown entries of the batch, rounded up. The default is where the paper ends after ten epochs
    on VOC (Kim et al., CVPR 2022: 0.2 % more in each).

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    share : float
        How much of the unknown entries is not believed to be no.
    correct : bool
        Take these for yes instead of leaving them out.

    Returns
    -------
    Tensor, [B, L]
        The loss of every entry; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.large_loss(logits, z)
    tensor([[0.1269, 0.0000, 0.9741]])
    """
    within(0, 1, share=share)
    unknown = z == 0
    # As a no, the entry with the larger logit has the larger loss.
    chosen = selection.large_loss(logits, unknown, share)
    if correct:
        return cross_entropy(logits, (z > 0) | chosen)
    return torch.where(chosen, 0.0, assume_negative(torch.where(chosen, 0.0, logits), z))
