"""Binary cross-entropy: on what is known, weighted by how much is known, or with the unknown taken for no."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.losses import terms
from partly.losses.door import takes_z

MIN_ENTRIES_TO_COUNT = 1 << 16  # entries of a batch, from which on it is asked how many are known
SPARSE_SHARE = 0.1  # share of them that is known, below which the others are not touched


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Every entry against its target: 1 yes, 0 no, or anything between. [B, L]"""
    return F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none")


def weighted_cross_entropy(logits: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
    """Derive the loss of every entry from its terms. [B, L]"""
    return cross_entropy(logits, targets) * weights


@takes_z
def bce(logits: Tensor, z: Tensor) -> Tensor:
    """Binary cross-entropy on the known entries; unknown entries count 0 and still divide. [B, L]

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
    >>> partly.losses.bce(logits, z)
    tensor([[0.1269, 0.0000, 0.9741]])
    """
    if _few(z):
        at = z.nonzero(as_tuple=True)
        return torch.zeros_like(logits).index_put(at, cross_entropy(logits[at], z[at] > 0))
    # A logit that counts 0 is taken out first, so that it cannot make a NaN.
    return weighted_cross_entropy(logits.masked_fill(z == 0, 0.0), *terms.bce(z, dtype=logits.dtype))


def _few(z: Tensor) -> bool:
    """Whether it is less work to pick out what is known than to go through all entries of a batch."""
    if z.numel() < MIN_ENTRIES_TO_COUNT or torch.compiler.is_compiling():
        return False
    return int(z.count_nonzero()) < SPARSE_SHARE * z.numel()


@takes_z
def assume_negative(logits: Tensor, z: Tensor) -> Tensor:
    """Binary cross-entropy with every unknown entry taken for a no. [B, L]

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
    >>> partly.losses.assume_negative(logits, z)
    tensor([[0.1269, 0.3133, 0.9741]])
    """
    return weighted_cross_entropy(logits, *terms.assume_negative(z, dtype=logits.dtype))


@takes_z
def partial_bce(
    logits: Tensor,
    z: Tensor,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    gamma: float = 1.0,
    p0: float = 0.1,
    value: float = 5.0,
    paper_rounding: bool = False,
) -> Tensor:
    """`bce` times g(p) = alpha p^gamma + beta, p the share of the item's labels that is known. [B, L]

    alpha and beta are solved from g(p0) = value and g(1) = 1 (`normaliser`) unless both are given;
    `paper_rounding` takes the pair that the paper prints, -4.45 and 5.45.

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    alpha, beta : float, optional
        Of g; without both they are solved for.
    gamma : float
        The power of the share that is known.
    p0, value : float
        The share at which g has this value.
    paper_rounding : bool
        The rounded pair of the paper.

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
    >>> partly.losses.partial_bce(logits, z)
    tensor([[0.3150, 0.0000, 2.4172]])
    """
    entries = bce(logits, z)
    return entries * terms.known_weight(z, alpha, beta, gamma, p0, value, paper_rounding, entries.dtype)
