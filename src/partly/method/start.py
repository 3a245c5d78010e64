"""Starting point of a method's networks: the solved plain baseline for the known labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from partly.networks import Network, build_residual
from partly.networks.backbones import copy_body
from partly.networks.residual import LowRankHead, ResidualHead


@dataclass(frozen=True, eq=False)
class Start:
    """A solved baseline: fixed features of the items, and a linear read-out of them.

    Parameters
    ----------
    baseline : object
        The solved `partly.solvers.start.Baseline`, which can also make starts without a fold; None in a loaded model.
    features : nn.Sequential
        Items -> features [B, W], without trained parameters. With a body, its input is the output of the body.
    weight, bias : Tensor
        Read-out, [L, W] and [L].
    contrast : callable
        Returns half the difference of two fits on bootstrap samples, [L, W]. Networks that have to differ start on
        either side of the baseline by so much.
    out_of_fold : callable
        Returns logits of the training entries by models that did not see the item, [N, L].
    body : nn.Sequential, optional
        Items -> input of `features`: a pretrained backbone. Each network trains a copy of it.
    """

    baseline: Any
    features: nn.Sequential
    weight: Tensor
    bias: Tensor
    contrast: Callable[[], Tensor]
    out_of_fold: Callable[[], Tensor]
    body: nn.Sequential | None = None

    def no_contrast(self) -> Tensor:
        """Return a contrast of zero, for networks that do not learn."""
        return torch.zeros_like(self.weight)

    @torch.no_grad()
    def network(self, head: str, head_settings: dict[str, Any], sample: int, **offered: Any) -> Network:
        """Return a network that scores as the baseline does until it learns. sample: -1, 0 or 1; see `Task.network`."""
        residual = build_residual(self.features, len(self.bias), head, head_settings, offered)
        assert isinstance(residual.head, ResidualHead)
        residual.head.start.weight.copy_(self.weight + sample * self.contrast() if sample else self.weight)
        residual.head.start.bias.copy_(self.bias)
        return Network(self._build_trunk(), residual.head)

    def low_rank(self, size: int, vectors: Tensor | None = None, max_norm: float | None = None) -> Network:
        """Return item embeddings and label vectors that score as the baseline does until they learn."""
        readout = torch.cat([self.weight, self.bias[:, None]], dim=1)
        return Network(self._build_trunk(), LowRankHead(readout, size, vectors, max_norm))

    def _build_trunk(self) -> nn.Sequential:
        """Return the module that maps items to features: a copy of the body, if there is one, and `features`."""
        return self.features if self.body is None else nn.Sequential(*copy_body(self.body), *self.features)
