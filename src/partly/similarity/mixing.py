"""Weighted sums of a few rows, without a dense weight matrix."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def mix_rows(rows: Tensor, index: Tensor, weights: Tensor) -> Tensor:
    """Return weighted sums of rows: rows [M, D], index and weights [B, K] -> [B, D]. Index -1 stands for no row.

    Rows and weights have gradients. Neither [B, K, D] nor [B, M] is allocated.

    Parameters
    ----------
    rows : Tensor, [M, D]
        Rows to mix.
    index : Tensor, [B, K]
        Rows of each mixture; -1 is none.
    weights : Tensor, [B, K]
        Weight of each row.

    Returns
    -------
    Tensor, [B, D]
        The mixtures.

    Examples
    --------
    >>> import torch
    >>> from partly.similarity import mix_rows
    >>> mix_rows(torch.eye(3), torch.tensor([[0, 2, -1]]), torch.tensor([[0.5, 2.0, 9.0]]))
    tensor([[0.5000, 0.0000, 2.0000]])
    """
    exists = index >= 0
    # An embedding bag is this sum; -1 becomes a row of weight 0.
    return F.embedding_bag(
        torch.where(exists, index, 0), rows, per_sample_weights=torch.where(exists, weights, 0.0), mode="sum"
    )
