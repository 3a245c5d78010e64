"""Losses of pairs: each yes of an item should score above each no of it. One value per item, 0 where it has no pair.

Unknown entries are in no pair, unless they are taken for no.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from partly.losses.door import takes_z


@takes_z
def lsep(logits: Tensor, z: Tensor, *, unknown_as_no: bool = False) -> Tensor:
    """log(1 + sum over pairs of a yes p and a no n of exp(s_n - s_p)). [B]

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    unknown_as_no : bool
        Pair a yes with unknown entries too.

    Returns
    -------
    Tensor, [B]
        The loss of every item; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.lsep(logits, z)
    tensor([0.2014])
    """
    yes, no = sides(z, unknown_as_no)
    paired = yes.any(dim=1) & no.any(dim=1)
    yes, no, scores = yes[paired], no[paired], logits[paired]
    # The double sum is a product of two sums, so it costs L and not L^2, and each has its own stable logarithm.
    above = torch.where(no, scores, -torch.inf).logsumexp(dim=1)
    below = torch.where(yes, -scores, -torch.inf).logsumexp(dim=1)
    return logits.new_zeros(len(z)).index_put((paired,), F.softplus(above + below))


@takes_z
def rank_net(logits: Tensor, z: Tensor, *, unknown_as_no: bool = False) -> Tensor:
    """The mean over pairs of a yes p and a no n of log(1 + exp(s_n - s_p)). [B]

    Takes memory for L numbers per yes.

    Parameters
    ----------
    logits : Tensor, [B, L]
        What a network gives.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    unknown_as_no : bool
        Pair a yes with unknown entries too.

    Returns
    -------
    Tensor, [B]
        The loss of every item; their mean is the loss.

    Examples
    --------
    >>> import torch
    >>> import partly
    >>> logits = torch.tensor([[2.0, -1.0, 0.5]])
    >>> z = torch.tensor([[1, 0, -1]], dtype=torch.int8)
    >>> partly.losses.rank_net(logits, z)
    tensor([0.2014])
    """
    yes, no = sides(z, unknown_as_no)
    item, label = (yes & no.any(dim=1, keepdim=True)).nonzero(as_tuple=True)
    rivals = no[item]
    gaps = torch.where(rivals, logits[item], 0.0) - logits[item, label].unsqueeze(1)
    sums = torch.where(rivals, F.softplus(gaps), 0.0).sum(dim=1)
    return logits.new_zeros(len(z)).index_add(0, item, sums / (rivals.sum(dim=1) * yes.sum(dim=1)[item]))


def sides(z: Tensor, unknown_as_no: bool) -> tuple[Tensor, Tensor]:
    """Which entries are yes, and which are no. Boolean, [B, L]"""
    return z > 0, z <= 0 if unknown_as_no else z < 0
