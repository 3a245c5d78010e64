"""Binary cross-entropy: on what is known, weighted by how much is known, or with the unknown taken for no."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.errors import SettingError
from partly.losses.door import takes_z

MANY = 1 << 16  # entries of a batch, from which on it is asked how many are known
FEW = 0.1  # share of them that is known, below which the others are not touched


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Every entry against its target: 1 yes, 0 no, or anything between. [B, L]"""
    return F.binary_cross_entropy_with_logits(logits, target.to(logits.dtype), reduction="none")


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
    signed = z.to(logits.dtype)
    # What counts 0 is log 2, of the logits that were taken out: no NaN can come of it.
    return F.binary_cross_entropy_with_logits(
        logits.masked_fill(z == 0, 0.0), signed.clamp(min=0), signed.abs(), reduction="none"
    )


def _few(z: Tensor) -> bool:
    """Whether it is less work to pick out what is known than to go through all entries of a batch."""
    if z.numel() < MANY or torch.compiler.is_compiling():
        return False
    return int(z.count_nonzero()) < FEW * z.numel()


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
    return cross_entropy(logits, z > 0)


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
    return entries * known_weight(z, alpha, beta, gamma, p0, value, paper_rounding, entries.dtype)


def known_weight(
    z: Tensor,
    alpha: float | None,
    beta: float | None,
    gamma: float,
    p0: float,
    value: float,
    paper_rounding: bool,
    dtype: torch.dtype,
) -> Tensor:
    """g(p) of each item, [B, 1]: see `partial_bce`."""
    if paper_rounding:
        alpha, beta = -4.45, 5.45
    elif alpha is None or beta is None:
        alpha, beta = normaliser(p0, value, gamma)
    share = (z != 0).sum(dim=1, keepdim=True) / z.shape[1]
    # An item of which nothing is known has no loss, whatever g is at 0 (infinite for gamma < 0).
    return alpha * torch.where(share > 0, share, 1.0).to(dtype) ** gamma + beta


def normaliser(p0: float, value: float, gamma: float) -> tuple[float, float]:
    """(alpha, beta) such that g(p) = alpha p^gamma + beta has g(p0) = value and g(1) = 1."""
    if not 0 < p0 < 1 or gamma == 0:
        raise SettingError(f"g(p0) = value needs 0 < p0 < 1 and gamma other than 0; got p0 = {p0}, gamma = {gamma}.")
    alpha = (value - 1.0) / (p0**gamma - 1.0)
    return alpha, 1.0 - alpha
