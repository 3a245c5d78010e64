"""Losses with a separate term for unknown entries. Known entries have their binary cross-entropy."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from partly import selection
from partly.errors import within
from partly.losses import terms
from partly.losses.basic import assume_negative, bce, cross_entropy, weighted_cross_entropy
from partly.losses.validation import validates_z

# -------------------------------------------------------------------- a weaker no


@validates_z
def down_weight(logits: Tensor, z: Tensor, *, weight: float = 0.05) -> Tensor:
    """Unknown entries count as negatives at a constant weight. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    weight : float
        Weight of unknown entries; known ones have 1.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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


@validates_z
def weak_assume_negative(logits: Tensor, z: Tensor) -> Tensor:
    """`down_weight` with 1 / (L - 1): the unknown entries of an item weigh about as much as one positive. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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


@validates_z
def label_smoothing(logits: Tensor, z: Tensor, *, smoothing: float = 0.1) -> Tensor:
    """Unknown entries count as negatives; all targets are smoothed. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    smoothing : float
        Distance of targets from 0 and 1.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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


@validates_z
def negative_label_smoothing(logits: Tensor, z: Tensor, *, smoothing: float = 0.1) -> Tensor:
    """Unknown entries have the target `smoothing`; known targets are not smoothed. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    smoothing : float
        Target of unknown entries.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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
    """Return H(p) = -p log p - (1 - p) log(1 - p) of p = sigmoid(logits), accurate at both ends. [B, L]"""
    size = logits.abs()
    return size * torch.sigmoid(-size) - F.logsigmoid(size)


@validates_z
def entropy_maximization(logits: Tensor, z: Tensor, *, alpha: float = 0.1) -> Tensor:
    """Unknown entries are drawn towards p = 1/2 by the term -alpha H(p). [B, L]

    The default is the paper's for COCO and NUS-WIDE (Zhou et al., ECCV 2022; VOC: 0.2).

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    alpha : float
        Weight of the entropy of unknown entries.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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


@validates_z
def entropy_minimization(logits: Tensor, z: Tensor, *, weight: float = 1.0) -> Tensor:
    """Unknown entries are pushed away from p = 1/2 by the term weight H(p). [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    weight : float
        Weight of the entropy of unknown entries.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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


@validates_z
def expected_positive(logits: Tensor, z: Tensor, *, expected_yes: float | None = None) -> Tensor:
    """`bce`, plus a penalty that keeps the predicted number of positives per item near `expected_yes`. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    expected_yes : float, optional
        Number of positives per item; by default `yes_per_item` of the batch.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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
    """Return ((mean over items of the sum of p) - expected_yes)^2 / L^2, a scalar."""
    return ((torch.sigmoid(logits).sum(dim=1).mean() - expected_yes) / logits.shape[1]) ** 2


def yes_per_item(yes: int, no: int, items: int, labels: int) -> float:
    """Estimate the number of positives per item from the numbers of known entries.

    With known negatives it is L times the share of positives among known entries, as if they were missing at random.
    With positives only it is the number of known positives per item, a lower bound.
    """
    return labels * yes / (yes + no) if no else yes / max(items, 1)


# -------------------------------------------------------------------- yes or no, as the predictions say


@validates_z
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
    """Unknown entries are a weighted mixture of robust terms for yes and no. [B, L]

    An unknown entry is positive with probability k = sigmoid(slope p + offset), and has the weight v = exp(-(p -
    centre)^2 / (2 width^2)). Its term is v (k (1 - p^q) / q + (1 - k) (1 - (1 - p)^r) / r), with q = yes_power and r =
    no_power. k and v have no gradient. The defaults are the authors' final values on VOC (Chen et al., IJCAI 2024).

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    slope, offset : float
        Of the probability that an unknown entry is positive.
    centre, width : float
        Of the weight of unknown entries.
    yes_power, no_power : float
        Exponents of the robust terms: towards 0 cross-entropy, at 1 the absolute error.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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
    # p^q = exp(q log p); expm1 is accurate for small q.
    yes = -torch.expm1(yes_power * F.logsigmoid(logits)) / yes_power
    no = -torch.expm1(no_power * F.logsigmoid(-logits)) / no_power
    return torch.where(z == 0, weight * (mixture * yes + (1 - mixture) * no), assume_negative(logits, z))


@validates_z
def large_loss(logits: Tensor, z: Tensor, *, share: float = 0.02, correct: bool = False) -> Tensor:
    """Unknown entries count as negatives, except for the share with the largest loss: ignored, or positives. [B, L]

    The share is of the unknown entries of the batch, rounded up. The default is the paper's value after ten epochs on
    VOC (Kim et al., CVPR 2022: 0.2 % more per epoch).

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    share : float
        Share of unknown entries that do not count as negatives.
    correct : bool
        Count these as positives instead of ignoring them.

    Returns
    -------
    Tensor, [B, L]
        Loss of every entry; the mean is the loss.

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
    # As negatives, entries with larger logits have larger losses.
    chosen = selection.large_loss(logits, unknown, share)
    if correct:
        return cross_entropy(logits, (z > 0) | chosen)
    return torch.where(chosen, 0.0, assume_negative(torch.where(chosen, 0.0, logits), z))
