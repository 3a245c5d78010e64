"""Choosing entries by rank. A choice is a boolean mask; no gradient flows through it."""

from __future__ import annotations

import math

import torch
from torch import Tensor


@torch.no_grad()
def largest(values: Tensor, among: Tensor, count: int) -> Tensor:
    """The `count` largest values among some entries (or all of these, if they are fewer): a mask of the same shape.

    The number is exact: ties are broken, in the same way each time.
    """
    candidates = among.flatten().nonzero().squeeze(1)
    best = values.flatten()[candidates].topk(min(count, len(candidates)), sorted=False).indices
    chosen = torch.zeros(among.numel(), dtype=torch.bool, device=among.device)
    chosen[candidates[best]] = True
    return chosen.view(among.shape)


def smallest(values: Tensor, among: Tensor, count: int) -> Tensor:
    """Return a mask of the `count` smallest values among some entries, like `largest`."""
    return largest(-values, among, count)


def share_of(share: float, total: int) -> int:
    """Return a share as a count, rounded up: 2 % of 6 entries makes 1, a third makes 2."""
    return math.ceil(share * total - 1e-9)  # 0.07 x 100 is a little more than 7


def large_loss(losses: Tensor, among: Tensor, share: float) -> Tensor:
    """The share of some entries, rounded up, that has the largest losses."""
    return largest(losses, among, share_of(share, int(among.sum())))


def small_loss(losses: Tensor, among: Tensor, keep: float) -> Tensor:
    """The share `keep` of some entries, rounded down, that has the smallest losses: all but `large_loss`."""
    return among & ~large_loss(losses, among, 1.0 - keep)


def co_label_selection(own: Tensor, peer: Tensor, z: Tensor, keep_high: float, keep_low: float) -> Tensor:
    """The unknown entries that are kept, as no, for the network whose losses are `own`. [B, L]

    The peer takes out likely yes, and leaves the share `keep_high` with its smallest losses; of these the network takes
    out what it knows already, and leaves the share `keep_low` with its own largest losses. Both shares are rounded
    down. Only the order counts: logits will do for losses, since as a no the larger logit has the larger loss.

    Parameters
    ----------
    own, peer : Tensor, [B, L]
        Losses of every entry as a no, by the network and by its peer.
    z : Tensor, [B, L]
        +1 yes, -1 no, 0 unknown.
    keep_high, keep_low : float
        The shares that are left by the peer, and then by the network.

    Returns
    -------
    Tensor, [B, L]
        Boolean.

    Examples
    --------
    >>> import torch
    >>> from partly.selection import co_label_selection
    >>> losses = torch.tensor([[0.1, 0.2, 0.3, 4.0]])
    >>> z = torch.zeros(1, 4, dtype=torch.int8)
    >>> co_label_selection(losses, losses, z, keep_high=0.75, keep_low=0.7)
    tensor([[False,  True,  True, False]])
    """
    return small_loss(-own, small_loss(peer, z == 0, keep_high), keep_low)
