"""A layer of a transformer the slow, obvious way."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from partly.networks import c_tran


def norm(token: Tensor, layer: nn.LayerNorm) -> Tensor:
    centred = token - token.mean()
    return centred / (centred.square().mean() + layer.eps).sqrt() * layer.weight + layer.bias


def slow_layer(layer: c_tran.Layer, tokens: list[Tensor]) -> list[Tensor]:
    """Token by token and head by head."""
    projected = [
        layer.query_key_value[1](norm(token, layer.query_key_value[0])).view(3, layer.heads, -1) for token in tokens
    ]
    result = []
    for token, (query, _, _) in zip(tokens, projected, strict=True):
        attended = []
        for head in range(layer.heads):
            close = [(query[head] @ key[head]) / query.shape[1] ** 0.5 for _, key, _ in projected]
            total = sum(c.exp() for c in close)
            attended.append(
                sum(c.exp() / total * value[head] for c, (_, _, value) in zip(close, projected, strict=True))
            )
        token = token + layer.attended[0](torch.cat(attended))
        inner = layer.feed_forward[1](norm(token, layer.feed_forward[0])).clamp(min=0)
        result.append(token + layer.feed_forward[3](inner))
    return result
