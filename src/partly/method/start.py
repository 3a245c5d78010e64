"""Where the networks of a method start: at the solved plain baseline for what is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from partly.networks import Network, build_residual
from partly.networks.layers import low_rank_network
from partly.networks.residual import ResidualHead


@dataclass(frozen=True, eq=False)
class Start:
    """A solved baseline: fixed features of the items, and a linear read-out of them.

    Parameters
    ----------
    baseline : str
        The method that was solved.
    features : nn.Sequential
        Items -> features [B, W]; nothing in it is trained.
    weight, bias : Tensor
        Read-out, [L, W] and [L].
    contrast : callable
        Returns half the difference of two fits on bootstrap samples, [L, W].
    out_of_fold : callable
        Returns logits of the training entries by models that did not see the item, [N, L].
    """

    baseline: str
    features: nn.Sequential
    weight: Tensor
    bias: Tensor
    contrast: Callable[[], Tensor]
    out_of_fold: Callable[[], Tensor]

    @torch.no_grad()
    def network(self, head: str, head_settings: dict[str, Any], sample: int, **offered: Any) -> Network:
        """Return a network that scores as the baseline does until it learns; see `Task.network`."""
        made = build_residual(self.features, len(self.bias), head, head_settings, offered)
        assert isinstance(made.head, ResidualHead)
        made.head.start.weight.copy_(self.weight + sample * self.contrast() if sample else self.weight)
        made.head.start.bias.copy_(self.bias)
        return made

    @torch.no_grad()
    def low_rank(self, size: int, vectors: Tensor | None = None, max_norm: float | None = None) -> Network:
        """Return items' places in a small space and a vector for each label, whose products are the baseline's logits.

        They are the singular vectors of its read-out, weights and biases together; as many as `size` allows. With
        given vectors [L, size], places are the least-squares fit. max_norm: no label vector is longer.
        """
        readout = torch.cat([self.weight, self.bias[:, None]], dim=1).double()
        if vectors is None:
            left, values, right = torch.linalg.svd(readout, full_matrices=False)
            kept = min(size, len(values))
            labels = torch.zeros(len(readout), size, dtype=torch.float64)
            labels[:, :kept] = left[:, :kept] * values[:kept].sqrt()
            places = torch.zeros(size, readout.shape[1], dtype=torch.float64)
            places[:kept] = values[:kept].sqrt()[:, None] * right[:kept]
        else:
            labels, places = vectors.double(), torch.linalg.pinv(vectors.double()) @ readout
        if max_norm is not None:
            longest = labels.norm(dim=1).max().clamp(min=1e-12) / max_norm
            labels, places = labels / longest, places * longest
        linear = nn.utils.skip_init(nn.Linear, self.weight.shape[1], size)
        linear.weight.copy_(places[:, :-1])
        linear.bias.copy_(places[:, -1])
        made = low_rank_network(Network(self.features, linear), size, len(readout), seed=0)
        made.head.get_parameter("weight").copy_(labels)
        return made
