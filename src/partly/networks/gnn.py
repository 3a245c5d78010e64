"""A graph neural network over all labels on top of an MLP: labels exchange messages before the read-out.

Reference
    T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
    CVPR 2019. Equations 3 to 6 and algorithm 2 of the supplement.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.errors import within
from partly.networks import mlp
from partly.networks.layers import apply_in_chunks

MAX_LABELS_OF_PAPER = 512  # up to so many labels, states have size L as in the paper
STATE = MAX_LABELS_OF_PAPER * MAX_LABELS_OF_PAPER  # numbers per item; with more labels, states are smaller
CHUNK_NUMBERS = 2**19  # numbers in the states of a chunk, which fits into a cache
CHECKPOINT_NUMBERS = 2**23  # above it, states are recomputed for the gradient


class LabelGNN(nn.Module):
    """Logits [B, L] -> logits [B, L].

    The nodes are the labels, fully connected and without self edges. The first state of a node is its logit at its own
    coordinate or, if the hidden size is not L, its logit times a learned label vector. In each step a GRU cell,
    `update`, receives the mean of ReLU(message(state)) over the other nodes. The sum of first and last state is read
    out at the node's own coordinate, or along a second learned vector. Without messages the output equals the input, so
    the network learns a correction.

    Parameters
    ----------
    labels : int
        Number of labels, L.
    hidden : int, optional
        Size of a state; L by default.
    steps : int
        Number of message passing steps.

    Examples
    --------
    >>> import torch
    >>> from partly.networks import LabelGNN
    >>> LabelGNN(labels=4)(torch.zeros(2, 4)).shape
    torch.Size([2, 4])
    """

    def __init__(self, labels: int, hidden: int | None = None, steps: int = 3) -> None:
        super().__init__()
        if hidden is None:
            hidden = labels if labels <= MAX_LABELS_OF_PAPER else max(16, STATE // labels)
        within(1, float("inf"), labels=labels, hidden=hidden)
        within(0, float("inf"), steps=steps)
        self.labels, self.steps = labels, steps
        self.message = nn.Linear(hidden, hidden)
        self.update = nn.GRUCell(hidden, hidden)
        self.embedding: nn.Parameter | None = None
        self.readout: nn.Parameter | None = None
        if hidden != labels:
            self.embedding = nn.Parameter(F.normalize(torch.randn(labels, hidden), dim=1))
            self.readout = nn.Parameter(self.embedding.detach().clone())

    def forward(self, logits: Tensor) -> Tensor:
        return apply_in_chunks(
            self._scores, self.labels * self.update.hidden_size, CHUNK_NUMBERS, CHECKPOINT_NUMBERS, logits
        )

    def _scores(self, logits: Tensor) -> Tensor:
        first = torch.diag_embed(logits) if self.embedding is None else logits.unsqueeze(2) * self.embedding
        state = first.flatten(0, 1)  # [B L, hidden]
        for _ in range(self.steps):
            messages = F.relu(self.message(state)).unflatten(0, logits.shape)
            # The mean over the others is the sum over all minus the own: linear in L. A single label gets 0.
            heard = (messages.sum(dim=1, keepdim=True) - messages) / max(1, self.labels - 1)
            state = self.update(heard.flatten(0, 1), state)
        both = first + state.unflatten(0, logits.shape)
        scores: Tensor = both.diagonal(dim1=1, dim2=2) if self.readout is None else (both * self.readout).sum(dim=2)
        return scores


def head(inputs: int, labels: int, *, hidden: int | None = None, steps: int = 3) -> tuple[nn.Module, nn.Module]:
    trunk, last = mlp.head(inputs, labels)
    return trunk, nn.Sequential(last, LabelGNN(labels, hidden, steps))
