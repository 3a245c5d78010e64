"""A transformer over the labels beside an MLP: each label is a token that says whether it is yes, no or unknown.

After: J. Lanchantin, T. Wang, V. Ordonez, Y. Qi. General Multi-label Image Classification with Transformers. CVPR 2021.
Their network is the head `c-tran`, which also says how such a network is trained; this one is for items that are one
vector, and learns in the few hundred steps that the other heads take.

Differs from `c-tran`: four tokens are projected from the features that the trunk of `mlp` makes. What is read out of
the labels' tokens is added to the logits of `mlp`. A state has a vector of its own for each label, and their sum is
added to every token before it is read out: otherwise next to nothing was learned of what is given.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from partly.errors import within
from partly.networks import mlp
from partly.networks.c_tran import CHECKPOINT_NUMBERS, CHUNK_NUMBERS, encoder, mask_labels, state_embeddings
from partly.networks.layers import apply_in_chunks


class LabelTransformer(nn.Module):
    """Features [B, inputs], and z [B, L] of what is known (or None) -> logits [B, L]."""

    def __init__(
        self,
        inputs: int,
        labels: int,
        *,
        width: int = 64,
        tokens: int = 4,
        layers: int = 3,
        heads: int = 4,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        within(1, float("inf"), inputs=inputs, labels=labels, tokens=tokens)
        self.tokens = tokens
        self.direct = nn.Linear(inputs, labels)
        self.project = nn.Linear(inputs, tokens * width)
        self.embedding = nn.Parameter(0.02 * torch.randn(labels, width))
        self.readout = nn.Parameter(torch.empty(labels, width).uniform_(-(width**-0.5), width**-0.5))
        self.yes, self.no = (nn.Parameter(torch.zeros(labels, width)) for _ in range(2))
        self.layers = encoder(width, layers, heads, dropout)

    def forward(self, features: Tensor, z: Tensor | None = None) -> Tensor:
        labels = mask_labels(z, features.new_zeros(features.shape[0], len(self.embedding)), self.training)
        numbers = (self.tokens + labels.shape[1]) * self.embedding.shape[1]
        logits = apply_in_chunks(self._part, numbers, CHUNK_NUMBERS, CHECKPOINT_NUMBERS, features, labels)
        return torch.where(labels == 0, logits, logits.detach()) if self.training else logits

    def _part(self, features: Tensor, given: Tensor) -> Tensor:
        item_tokens = self.project(features).unflatten(1, (self.tokens, -1))
        states = state_embeddings(given, self.yes, self.no)
        hidden = self.layers(torch.cat([item_tokens, self.embedding + states], dim=1))[:, self.tokens :]
        hidden = hidden + states.sum(dim=1, keepdim=True)
        scores: Tensor = self.direct(features) + (hidden * self.readout).sum(dim=2)
        return scores


def head(
    inputs: int, labels: int, *, width: int = 64, tokens: int = 4, layers: int = 3, heads: int = 4, dropout: float = 0.1
) -> tuple[nn.Module, nn.Module]:
    trunk, last = mlp.head(inputs, labels)
    assert isinstance(last, nn.Linear)
    settings = {"width": width, "tokens": tokens, "layers": layers, "heads": heads}
    return trunk, LabelTransformer(last.in_features, labels, **settings, dropout=dropout)
