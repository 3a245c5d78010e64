"""A transformer over the labels next to an MLP, whose label tokens carry the known states; for items that are one
vector.

It learns within the few hundred steps of the other heads. Training and prediction with known labels work as in
`c-tran`.

Reference
    J. Lanchantin, T. Wang, V. Ordonez, Y. Qi. General Multi-label Image Classification with Transformers. CVPR 2021.
    Their network is the head `c-tran`.

Differences from the paper
    Four item tokens are projected from the features of the trunk of `mlp`. The read-out of the label tokens is added
    to the logits of `mlp`. States have a vector per label, and their sum is added to every token before the read-out;
    without it, almost nothing is learned from given labels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from partly.errors import within
from partly.networks import mlp
from partly.networks.c_tran import CHECKPOINT_NUMBERS, CHUNK_NUMBERS, encoder, mask_labels, state_embeddings
from partly.networks.layers import apply_in_chunks


class LabelTransformer(nn.Module):
    """Features [B, inputs], and known labels z [B, L] or None -> logits [B, L]."""

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

    def start_at_zero(self) -> None:
        """Make all logits zero until it learns."""
        for parameter in (self.readout, self.direct.weight, self.direct.bias):
            nn.init.zeros_(parameter)

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
