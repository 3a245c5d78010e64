"""Binary cross-entropy on known entries, optionally weighted, or with unknown entries as negatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.losses import terms
from partly.losses.validation import validates_z

MIN_ENTRIES_TO_COUNT = 1 << 16  # entries per batch above which the known share is checked
SPARSE_SHARE = 0.1  # known share below which only known entries are computed


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of every entry with its target: 1 yes, 0 no, or a value between. [B, L]"""
    return F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none")


def weighted_cross_entropy(logits: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
    """Derive the loss of every entry from its terms. [B, L]"""
    return cross_entropy(logits, targets) * weights


@validates_z
def bce(logits: Tensor, z: Tensor) -> Tensor:
    """Binary cross-entropy on the known entries; unknown entries are 0 and stay in the mean. [B, L]

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
    >>> partly.losses.bce(logits, z)
    tensor([[0.1269, 0.0000, 0.9741]])
    """
    if _is_sparse(z):
        at = z.nonzero(as_tuple=True)
        return torch.zeros_like(logits).index_put(at, cross_entropy(logits[at], z[at] > 0))
    # Ignored logits are replaced first, so that they cannot produce NaN.
    return weighted_cross_entropy(logits.masked_fill(z == 0, 0.0), *terms.bce(z, dtype=logits.dtype))


def _is_sparse(z: Tensor) -> bool:
    """Tell whether picking out the known entries is less work than computing all."""
    if z.numel() < MIN_ENTRIES_TO_COUNT or torch.compiler.is_compiling():
        return False
    return int(z.count_nonzero()) < SPARSE_SHARE * z.numel()


@validates_z
def assume_negative(logits: Tensor, z: Tensor) -> Tensor:
    """Binary cross-entropy with every unknown entry as a negative. [B, L]

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
    >>> partly.losses.assume_negative(logits, z)
    tensor([[0.1269, 0.3133, 0.9741]])
    """
    return weighted_cross_entropy(logits, *terms.assume_negative(z, dtype=logits.dtype))


@validates_z
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
    """`bce` times g(p) = alpha p^gamma + beta, where p is the known share of the item's labels. [B, L]

    Unless both are given, `normalization_coefficients` solves alpha and beta from g(p0) = value and g(1) = 1.
    `paper_rounding` uses the rounded values of the paper, -4.45 and 5.45.

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    alpha, beta : float, optional
        Coefficients of g; solved for by default.
    gamma : float
        Exponent of the known share.
    p0, value : float
        Known share at which g has this value.
    paper_rounding : bool
        Use the rounded coefficients of the paper.

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
    >>> partly.losses.partial_bce(logits, z)
    tensor([[0.3150, 0.0000, 2.4172]])
    """
    entries = bce(logits, z)
    return entries * terms.compute_known_weight(z, alpha, beta, gamma, p0, value, paper_rounding, entries.dtype)
