"""A transformer over the labels: each label is a token that says whether it is yes, no or unknown.

Paper: J. Lanchantin, T. Wang, V. Ordonez, Y. Qi. General Multi-label Image Classification with Transformers. CVPR 2021.
"C-Tran".

Label-mask training, for any method: in training, a random part of what is known of an item is given to the network as
states, and the rest is hidden. The logits of what was given carry no gradient, so the loss teaches the network what
was hidden and what is unknown, from the items' features and from what was given. In use, nothing is given unless the
caller gives it, and then all of it. A state that training never showed (no, where only yes is known) changes nothing.
Where one yes per item is known, what is given never tells of another yes: there is nothing to learn for `known=`.

Differs: a token for each place of a picture becomes four, projected from the pooled features of the trunk of `mlp`; 64
numbers per token instead of 2,048. What is read out of the tokens is added to the logits of `mlp`. A state has a vector
of its own for each label (the paper: one for all labels), and their sum is added to every token before it is read out:
otherwise next to nothing was learned of what is given in the few hundred steps that the other heads take. Given are
known entries alone (the paper's unknown ones count as no), each with a chance that is drawn for the item from 0 to 3/4;
the paper draws their number. Layers are normalised before instead of after, and attention has no dropout, so that its
L x L weights need not be kept. The loss is the method's, and a mean; the authors' code takes sums.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from partly.errors import SettingError, within
from partly.networks import mlp
from partly.networks.in_parts import in_parts

GIVEN = 0.75  # at most this share of what is known is given in training, on average
PART = 2**20  # numbers in the tokens of the items that are worked on at a time
KEPT = 2**22  # numbers in the tokens of a batch: with more, they are worked out again for the gradient


class CTran(nn.Module):
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
        within(1, float("inf"), inputs=inputs, labels=labels, width=width, tokens=tokens, heads=heads)
        if width % heads:
            raise SettingError(f"width = {width} must be a multiple of heads = {heads}.")
        self.tokens = tokens
        self.direct = nn.Linear(inputs, labels)
        self.project = nn.Linear(inputs, tokens * width)
        self.embedding = nn.Parameter(0.02 * torch.randn(labels, width))
        self.readout = nn.Parameter(torch.empty(labels, width).uniform_(-(width**-0.5), width**-0.5))
        self.yes, self.no = (nn.Parameter(torch.zeros(labels, width)) for _ in range(2))
        self.layers = nn.Sequential(*(Layer(width, heads, dropout) for _ in range(layers)), nn.LayerNorm(width))

    def forward(self, features: Tensor, z: Tensor | None = None) -> Tensor:
        given = features.new_zeros(features.shape[0], len(self.embedding), dtype=torch.int8) if z is None else z
        if self.training:
            chance = GIVEN * torch.rand(len(given), 1, device=given.device)
            given = given.masked_fill(torch.rand(given.shape, device=given.device) >= chance, 0)
        logits = self._scores(features, given)
        return torch.where(given == 0, logits, logits.detach()) if self.training else logits

    def _scores(self, features: Tensor, given: Tensor) -> Tensor:
        numbers = (self.tokens + given.shape[1]) * self.embedding.shape[1]
        return in_parts(self._part, numbers, PART, KEPT, features, given)

    def _part(self, features: Tensor, given: Tensor) -> Tensor:
        seen = self.project(features).unflatten(1, (self.tokens, -1))
        state = given.unsqueeze(2)
        told = torch.where(state > 0, self.yes, torch.where(state < 0, self.no, 0.0))  # unknown adds nothing
        told = told * self.yes.shape[1] ** 0.5  # as embeddings usually are: a step of the optimiser counts for more
        hidden = self.layers(torch.cat([seen, self.embedding + told], dim=1))[:, self.tokens :]
        hidden = hidden + told.sum(dim=1, keepdim=True)
        scores: Tensor = self.direct(features) + (hidden * self.readout).sum(dim=2)
        return scores


class Layer(nn.Module):
    """Tokens [B, T, width] -> the same: each attends to all others, then is worked on by itself."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width))
        self.attended = nn.Sequential(nn.Linear(width, width), nn.Dropout(dropout))
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.Dropout(dropout)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = self.query_key_value(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        tokens = tokens + self.attended(attend(query, key, value).transpose(1, 2).flatten(2))
        changed: Tensor = tokens + self.feed_forward(tokens)
        return changed


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Scaled dot-product attention, [B, heads, T, D] each."""
    if forward_ad.unpack_dual(query).tangent is None:
        return F.scaled_dot_product_attention(query, key, value)
    # torch's own, three times as fast at 1,000 tokens, knows no derivative in forward mode.
    closeness: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return closeness.softmax(dim=-1) @ value


def head(
    inputs: int, labels: int, *, width: int = 64, tokens: int = 4, layers: int = 3, heads: int = 4, dropout: float = 0.1
) -> tuple[nn.Module, nn.Module]:
    trunk, last = mlp.head(inputs, labels)
    assert isinstance(last, nn.Linear)
    settings = {"width": width, "tokens": tokens, "layers": layers, "heads": heads}
    return trunk, CTran(last.in_features, labels, **settings, dropout=dropout)
