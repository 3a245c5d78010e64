"""Losses that weight an entry by how wrong the prediction is.

The weight is differentiated too, as the formulas say.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.errors import within
from partly.losses.basic import cross_entropy
from partly.losses.validation import validates_z


@validates_z
def focal(logits: Tensor, z: Tensor, *, gamma: float = 2.0) -> Tensor:
    """Focal loss; unknown entries count as negatives. Weight: (1 - p of the target)^gamma. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    gamma : float
        Focusing parameter; 0 is `assume_negative`.

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
    >>> partly.losses.focal(logits, z)
    tensor([[0.0018, 0.0227, 0.3774]])
    """
    return asymmetric(logits, z, gamma_yes=gamma, gamma_no=gamma, clip=0.0)


@validates_z
def asymmetric(
    logits: Tensor, z: Tensor, *, gamma_yes: float = 0.0, gamma_no: float = 4.0, clip: float = 0.05
) -> Tensor:
    """Focal loss with a separate gamma for negatives, which are ignored below p = `clip`. [B, L]

    The defaults are those of the paper (Ridnik et al., ICCV 2021).

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    gamma_yes, gamma_no : float
        Focusing parameters of positives and negatives.
    clip : float
        Negatives below this probability are ignored.

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
    >>> partly.losses.asymmetric(logits, z)
    tensor([[0.1269, 0.0006, 0.0913]])
    """
    within(0, math.inf, gamma_yes=gamma_yes, gamma_no=gamma_no)
    within(0, 0.99, clip=clip)
    return torch.where(z > 0, _focal(logits, gamma_yes), _focal_negative(logits, gamma_no, clip))


@validates_z
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
    """`asymmetric` with a separate gamma and weight for unknown entries, some of which are ignored. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    gamma_yes, gamma_no, gamma_unknown : float
        Focusing parameters of each kind of entry.
    clip : float
        Negatives below this probability are ignored.
    weight_unknown : float
        Weight of unknown entries.
    ignored : Tensor, [B, L], optional
        Mask of entries that are ignored.

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
    >>> partly.losses.partial_asymmetric(logits, z)
    tensor([[0.1269, 0.0227, 0.6063]])
    """
    within(0, math.inf, gamma_yes=gamma_yes, gamma_no=gamma_no, gamma_unknown=gamma_unknown)
    within(0, math.inf, weight_unknown=weight_unknown)
    within(0, 0.99, clip=clip)
    if ignored is not None:
        logits = torch.where(ignored, 0.0, logits)
    unknown = weight_unknown * _focal_negative(logits, gamma_unknown, clip)
    known = torch.where(z > 0, _focal(logits, gamma_yes), _focal_negative(logits, gamma_no, clip))
    entries = torch.where(z == 0, unknown, known)
    return entries if ignored is None else torch.where(ignored, 0.0, entries)


@validates_z
def hill(logits: Tensor, z: Tensor, *, height: float = 1.5, margin: float = 1.0, gamma: float = 2.0) -> Tensor:
    """Unknown entries: (height - p) p^2, whose gradient fades as p approaches 1. Positives: focal, with a margin. [B,
    L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    height : float
        Second zero of the curve of unknown entries; its maximum is at two thirds of it.
    margin : float
        Subtracted from the logits of positives.
    gamma : float
        Focusing parameter of positives.

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
    >>> partly.losses.hill(logits, z)
    tensor([[0.0227, 0.0890, 0.9741]])
    """
    within(0, math.inf, gamma=gamma)
    p = torch.sigmoid(logits)
    doubted = torch.where(z == 0, (height - p) * p**2, cross_entropy(logits, torch.zeros_like(z)))
    return torch.where(z > 0, _focal(logits - margin, gamma), doubted)


@validates_z
def splc(logits: Tensor, z: Tensor, *, threshold: float = 0.6, margin: float = 1.0, gamma: float = 2.0) -> Tensor:
    """Focal loss; unknown entries count as positives above p = `threshold`, else as negatives. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    threshold : float
        Probability above which an unknown entry counts as positive.
    margin : float
        Subtracted from the logits of known positives.
    gamma : float
        Focusing parameter.

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
    >>> partly.losses.splc(logits, z)
    tensor([[0.0227, 0.0227, 0.3774]])
    """
    within(0, math.inf, gamma=gamma)
    within(0, 1, threshold=threshold)
    relabeled = (z == 0) & (torch.sigmoid(logits.detach()) > threshold)
    target = torch.where(z > 0, logits - margin, torch.where(relabeled, logits, -logits))
    return _focal(target, gamma)


def _focal(logits: Tensor, gamma: float) -> Tensor:
    """-(1 - p)^gamma log p: the focal loss of positives."""
    # A power via its logarithm has a finite gradient for any gamma.
    return torch.exp(gamma * F.logsigmoid(-logits)) * -F.logsigmoid(logits)


def _focal_negative(logits: Tensor, gamma: float, clip: float) -> Tensor:
    """-q^gamma log(1 - q), q = max(p - clip, 0): the focal loss of negatives."""
    if not clip:
        return _focal(-logits, gamma)
    shifted = torch.sigmoid(logits) - clip
    counts = shifted > 0
    q = torch.where(counts, shifted, 0.5)  # any interior value: the power of 0 has no finite gradient
    return torch.where(counts, q**gamma * -torch.log1p(-q), 0.0)
