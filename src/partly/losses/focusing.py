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
    """Unknown entries are taken for no; each entry counts (1 - p of its target)^gamma. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    gamma : float
        How fast an entry loses weight as it fits; 0 is `assume_negative`.

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
    >>> partly.losses.focal(logits, z)
    tensor([[0.0018, 0.0227, 0.3774]])
    """
    return asymmetric(logits, z, gamma_yes=gamma, gamma_no=gamma, clip=0.0)


@takes_z
def asymmetric(
    logits: Tensor, z: Tensor, *, gamma_yes: float = 0.0, gamma_no: float = 4.0, clip: float = 0.05
) -> Tensor:
    """Focal, with a gamma of its own for no, of which those below p = `clip` do not count at all. [B, L]

    The defaults are those of the paper (Ridnik et al., ICCV 2021).

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    gamma_yes, gamma_no : float
        `gamma` of `focal`, of yes and of no.
    clip : float
        A no below this probability does not count.

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
    >>> partly.losses.asymmetric(logits, z)
    tensor([[0.1269, 0.0006, 0.0913]])
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

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    gamma_yes, gamma_no, gamma_unknown : float
        `gamma` of `focal`, of each kind of entry.
    clip : float
        A no below this probability does not count.
    weight_unknown : float
        How much an unknown entry counts.
    ignored : Tensor, [B, L], optional
        Boolean: entries that do not count.

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
    >>> partly.losses.partial_asymmetric(logits, z)
    tensor([[0.1269, 0.0227, 0.6063]])
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
    """Unknown entries: (height - p) p^2, whose pull fades as p goes to 1. Yes: focal, at `margin` less. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    height : float
        Where the curve of unknown entries would cross 0 again; its top is at two thirds of it.
    margin : float
        What is taken off the logit of a yes.
    gamma : float
        As in `focal`, of yes.

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
    >>> partly.losses.hill(logits, z)
    tensor([[0.0227, 0.0890, 0.9741]])
    """
    within(0, math.inf, gamma=gamma)
    p = torch.sigmoid(logits)
    doubted = torch.where(z == 0, (height - p) * p**2, cross_entropy(logits, torch.zeros_like(z)))
    return torch.where(z > 0, _focused(logits - margin, gamma), doubted)


@takes_z
def splc(logits: Tensor, z: Tensor, *, threshold: float = 0.6, margin: float = 1.0, gamma: float = 2.0) -> Tensor:
    """Focal; unknown entries are yes above p = `threshold`, else no. Known yes: at `margin` less. [B, L]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    threshold : float
        The probability from which on an unknown entry is taken for yes.
    margin : float
        What is taken off the logit of a known yes.
    gamma : float
        As in `focal`.

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
    >>> partly.losses.splc(logits, z)
    tensor([[0.0227, 0.0227, 0.3774]])
    """
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
