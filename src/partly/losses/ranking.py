"""Pairwise ranking losses: positives of an item should score above its negatives.

One value per item, 0 without pairs. Unknown entries are in no pair, unless they count as negatives.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.losses.validation import validates_z


@validates_z
def lsep(logits: Tensor, z: Tensor, *, unknown_as_no: bool = False) -> Tensor:
    """log(1 + sum over pairs of a positive p and a negative n of exp(s_n - s_p)). [B]

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    unknown_as_no : bool
        Treat unknown entries as negatives.

    Returns
    -------
    Tensor, [B]
        Loss of every item; the mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.lsep(logits, z)
    tensor([0.2014])
    """
    yes, no = positives_and_negatives(z, unknown_as_no)
    paired = yes.any(dim=1) & no.any(dim=1)
    yes, no, scores = yes[paired], no[paired], logits[paired]
    # The double sum is a product of two sums: L operations instead of L^2, each with a stable log-sum-exp.
    above = torch.where(no, scores, -torch.inf).logsumexp(dim=1)
    below = torch.where(yes, -scores, -torch.inf).logsumexp(dim=1)
    return logits.new_zeros(len(z)).index_put((paired,), F.softplus(above + below))


@validates_z
def rank_net(logits: Tensor, z: Tensor, *, unknown_as_no: bool = False) -> Tensor:
    """Mean over pairs of a positive p and a negative n of log(1 + exp(s_n - s_p)). [B]

    It needs memory for L numbers per positive.

    Parameters
    ----------
    logits : Tensor, [B, L]
        Output of a network.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    unknown_as_no : bool
        Treat unknown entries as negatives.

    Returns
    -------
    Tensor, [B]
        Loss of every item; the mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.rank_net(logits, z)
    tensor([0.2014])
    """
    yes, no = positives_and_negatives(z, unknown_as_no)
    item, label = (yes & no.any(dim=1, keepdim=True)).nonzero(as_tuple=True)
    rivals = no[item]
    gaps = torch.where(rivals, logits[item], 0.0) - logits[item, label].unsqueeze(1)
    sums = torch.where(rivals, F.softplus(gaps), 0.0).sum(dim=1)
    return logits.new_zeros(len(z)).index_add(0, item, sums / (rivals.sum(dim=1) * yes.sum(dim=1)[item]))


def positives_and_negatives(z: Tensor, unknown_as_no: bool) -> tuple[Tensor, Tensor]:
    """Return the masks of positives and negatives, [B, L]."""
    return z > 0, z <= 0 if unknown_as_no else z < 0
