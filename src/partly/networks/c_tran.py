"""C-Tran: a transformer over image positions and labels, whose label tokens carry the known states.

Each position of the unpooled maps is a token, without position encoding, as in the authors' code. Items without maps
(features, texts) are one token; `label-transformer` suits them better.

Label-mask training, with any method: a random part of the known labels is given to the network as states, the rest is
masked. Logits of given labels carry no gradient, so the network learns masked and unknown labels from the item and the
given labels. For prediction nothing is given unless the caller passes `known=`. States that do not occur
in training have no effect: with one positive per item, the network learns nothing from `known=`.

Reference
    J. Lanchantin, T. Wang, V. Ordonez, Y. Qi. General Multi-label Image Classification with Transformers. CVPR 2021.

Differences from the paper
    Channels are first projected to `width` (the paper: 2,048, the number of channels). Only known labels are given;
    the paper counts unknown ones as negatives. The given share is drawn per item from 0 to 3/4; the paper draws the
    number. Layer normalization comes first, and attention has no dropout, so its weights need not be stored. The loss
    is that of the method, as a mean; the authors' code takes sums.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional as F

from partly.errors import SettingError, within
from partly.networks.layers import apply_in_chunks
from partly.networks.network import as_maps
from partly.registry import About

ABOUT = About(takes_maps=True)
MAX_GIVEN_SHARE = 0.75  # upper bound of the share of known labels given in training
CHUNK_NUMBERS = 2**20  # numbers in the tokens of a chunk of items
CHECKPOINT_NUMBERS = 2**22  # above it, activations are recomputed for the gradient


class CTran(nn.Module):
    """Maps [B, inputs, H, W] or features [B, inputs], and known labels z [B, L] or None -> logits [B, L]."""

    def __init__(
        self, inputs: int, labels: int, *, width: int = 128, layers: int = 3, heads: int = 4, dropout: float = 0.1
    ) -> None:
        super().__init__()
        within(1, float("inf"), inputs=inputs, labels=labels)
        self.layers = encoder(width, layers, heads, dropout)
        self.project = nn.Linear(inputs, width)
        bound = width**-0.5
        self.embedding, self.readout = (
            nn.Parameter(torch.empty(labels, width).uniform_(-bound, bound)) for _ in range(2)
        )
        self.bias = nn.Parameter(torch.zeros(labels))
        self.yes, self.no = (nn.Parameter(torch.zeros(width)) for _ in range(2))  # the same for all labels

    def start_at_zero(self) -> None:
        """Make all logits zero until it learns."""
        for parameter in (self.readout, self.bias):
            nn.init.zeros_(parameter)

    def forward(self, features: Tensor, z: Tensor | None = None) -> Tensor:
        labels = mask_labels(z, features.new_zeros(features.shape[0], len(self.embedding)), self.training)
        tokens = features[0, 0].numel() + len(self.embedding)
        logits = apply_in_chunks(
            self._part, tokens * self.embedding.shape[1], CHUNK_NUMBERS, CHECKPOINT_NUMBERS, features, labels
        )
        return torch.where(labels == 0, logits, logits.detach()) if self.training else logits

    def _part(self, features: Tensor, given: Tensor) -> Tensor:
        image_tokens = self.project(as_maps(features).flatten(2).transpose(1, 2))
        label_tokens = self.embedding + state_embeddings(given, self.yes, self.no)
        hidden = self.layers(torch.cat([image_tokens, label_tokens], dim=1))[:, image_tokens.shape[1] :]
        scores: Tensor = (hidden * self.readout).sum(dim=2) + self.bias
        return scores


def mask_labels(z: Tensor | None, nothing: Tensor, training: bool) -> Tensor:
    """Return the labels given to the network: z [B, L], in training a random part; `nothing` [B, L] without z."""
    labels = nothing.to(torch.int8) if z is None else z
    if not training:
        return labels
    chance = MAX_GIVEN_SHARE * torch.rand(len(labels), 1, device=labels.device)
    return labels.masked_fill(torch.rand(labels.shape, device=labels.device) >= chance, 0)


def state_embeddings(given: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Return the embedding of the given labels, [B, L, width]; unknown adds nothing."""
    state = given.unsqueeze(2)
    embedding: Tensor = torch.where(state > 0, yes, torch.where(state < 0, no, 0.0))
    scale: float = yes.shape[-1] ** 0.5  # scaled as embeddings usually are, so that optimizer steps have more effect
    return embedding * scale


def encoder(width: int, layers: int, heads: int, dropout: float) -> nn.Sequential:
    """Return a transformer encoder: [B, T, width] -> [B, T, width]."""
    within(1, float("inf"), width=width, heads=heads)
    if width % heads:
        raise SettingError(f"width = {width} must be a multiple of heads = {heads}.")
    return nn.Sequential(*(Layer(width, heads, dropout) for _ in range(layers)), nn.LayerNorm(width))


class Layer(nn.Module):
    """Transformer layer: self-attention, then a feed-forward network. [B, T, width] -> [B, T, width]."""

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
        updated: Tensor = tokens + self.feed_forward(tokens)
        return updated


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Scaled dot-product attention, [B, heads, T, D] each."""
    if forward_ad.unpack_dual(query).tangent is None:
        return F.scaled_dot_product_attention(query, key, value)
    # torch's function is faster, but has no forward-mode derivative.
    similarity: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return similarity.softmax(dim=-1) @ value


def head(
    inputs: int, labels: int, *, width: int = 128, layers: int = 3, heads: int = 4, dropout: float = 0.1
) -> tuple[nn.Module, nn.Module]:
    return nn.Identity(), CTran(inputs, labels, width=width, layers=layers, heads=heads, dropout=dropout)
