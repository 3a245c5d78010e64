"""Weighted sums of a few rows, without the matrix of all weights."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def mixed(rows: Tensor, index: Tensor, weights: Tensor) -> Tensor:
    """rows [M, D], index and weights [B, K] -> [B, D]: the sum over K of a weight times a row; index -1 is no row.

    Both rows and weights have gradients. No [B, K, D] and no [B, M] is ever made.

    Parameters
    ----------
    rows : Tensor, [M, D]
        What is mixed.
    index : Tensor, [B, K]
        Which rows; -1 is none.
    weights : Tensor, [B, K]
        How much of each.

    Returns
    -------
    Tensor, [B, D]
        The mixtures.

    Examples
    --------
    >>> import torch
    >>> from partly.similarity import mixed
    >>> mixed(torch.eye(3), torch.tensor([[0, 2, -1]]), torch.tensor([[0.5, 2.0, 9.0]]))
    tensor([[0.5000, 0.0000, 2.0000]])
    """
    there = index >= 0
    # A bag of embeddings is exactly this sum; -1 becomes a row that weighs nothing.
    return F.embedding_bag(
        torch.where(there, index, 0), rows, per_sample_weights=torch.where(there, weights, 0.0), mode="sum"
    )
