"""A head that starts at a solved read-out and learns a change to it that starts at zero.

Weight decay then pulls towards the start instead of towards zero, and a network that has taken no step scores exactly
as the solved baseline does.
"""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import skip_init


def accepts_labels(head: nn.Module) -> bool:
    """Return whether the forward of a head takes (features, z)."""
    if isinstance(head, ResidualHead):
        return head.accepts_labels
    return "z" in inspect.signature(head.forward).parameters


class LowRankHead(nn.Module):
    """Inner products of item embeddings and label vectors, [B, L], plus the rest of a fixed read-out.

    Parameters
    ----------
    readout : Tensor
        Weights and biases of the read-out at which it starts, [L, W + 1].
    size : int
        Length of a label vector. Embeddings and vectors start at the leading singular vectors.
    vectors : Tensor, optional
        Label vectors [L, size], not trained; embeddings then start at the least-squares fit.
    max_norm : float, optional
        Length of the longest label vector.
    """

    def __init__(
        self, readout: Tensor, size: int, vectors: Tensor | None = None, max_norm: float | None = None
    ) -> None:
        super().__init__()
        labels, width = readout.shape[0], readout.shape[1] - 1
        self.embedding = skip_init(nn.Linear, width, size)
        self.weight = nn.Parameter(torch.empty(labels, size), requires_grad=vectors is None)
        self.remainder = skip_init(nn.Linear, width, labels).requires_grad_(False)
        left, right = _factors(readout.double(), size, vectors)
        if max_norm is not None:
            longest = left.norm(dim=1).max().clamp(min=1e-12) / max_norm
            left, right = left / longest, right * longest
        with torch.no_grad():
            self.weight.copy_(left)
            self._set(self.embedding, right)
            # From the float32 factors, so that it makes up for their rounding too.
            self._set(self.remainder, readout.double() - self.weight.double() @ right.float().double())

    @staticmethod
    def _set(layer: nn.Linear, values: Tensor) -> None:
        layer.weight.copy_(values[:, :-1])
        layer.bias.copy_(values[:, -1])

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = F.linear(self.embedding(features), self.weight) + self.remainder(features)
        return logits


def _factors(readout: Tensor, size: int, vectors: Tensor | None) -> tuple[Tensor, Tensor]:
    """Factors [L, size] and [size, W + 1] of a read-out."""
    if vectors is not None:
        return vectors.double(), torch.linalg.pinv(vectors.double()) @ readout
    left, values, right = torch.linalg.svd(readout, full_matrices=False)
    rank = min(size, len(values))
    labels, items = readout.new_zeros(len(readout), size), readout.new_zeros(size, readout.shape[1])
    labels[:, :rank] = left[:, :rank] * values[:rank].sqrt()
    items[:rank] = values[:rank].sqrt()[:, None] * right[:rank]
    return labels, items


class ResidualHead(nn.Module):
    """Logits of a fixed linear read-out of the features [B, W], plus a change.

    Without `last` the change is a second linear read-out of the same features. With `last` it is a head on the first
    `inputs` features, which are the standardized items: its linear layer starts at zero, or, where the last layer is
    not linear, a gate for each label does. Layers that follow a linear one (a graph over labels) see the logits of the
    start too, so that they refine the solved scores. A head with a method `start_at_zero` needs no gate: in a head
    that is given known labels, a gate would learn from the answers.

    Parameters
    ----------
    width : int
        How many features, W.
    labels : int
        How many labels, L.
    inputs : int, optional
        Number of inputs that are the standardized items.
    trunk, last : nn.Module, optional
        The two parts of a head, as `partly.networks.find_head(...).make` returns them.
    """

    def __init__(
        self,
        width: int,
        labels: int,
        inputs: int | None = None,
        trunk: nn.Module | None = None,
        last: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.inputs, self.accepts_labels = inputs, last is not None and accepts_labels(last)
        self.start = skip_init(nn.Linear, width, labels).requires_grad_(False)
        nn.init.zeros_(self.start.weight)
        nn.init.zeros_(self.start.bias)
        self.trunk = trunk or nn.Identity()
        layers = list(last) if isinstance(last, nn.Sequential) else [last or skip_init(nn.Linear, width, labels)]
        first = layers[0]
        self.linear = first if isinstance(first, nn.Linear) else None
        layers = layers[self.linear is not None :]
        self.rest = layers[0] if len(layers) == 1 else nn.Sequential(*layers) if layers else None
        if self.linear is not None:
            nn.init.zeros_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)
        zero = None if self.linear is not None else getattr(self.rest, "start_at_zero", None)
        if zero is not None:
            zero()
        gated = self.rest is not None and zero is None
        self.gate = nn.Parameter(torch.zeros(labels)) if gated else None

    @property
    def is_linear(self) -> bool:
        """True if the change is a linear read-out of the same features."""
        return self.inputs is None

    @property
    def total_weight(self) -> Tensor:
        """Weights [L, W] of a head that is linear."""
        assert self.linear is not None
        weight: Tensor = self.start.weight + self.linear.weight
        return weight

    def forward(self, features: Tensor, z: Tensor | None = None) -> Tensor:
        logits: Tensor = self.start(features)
        x = self.trunk(features if self.inputs is None else features[:, : self.inputs])
        if self.linear is not None:
            logits = logits + self.linear(x)
        if self.rest is None:
            return logits
        if self.linear is not None:
            change = self.rest(logits) - logits
        else:
            change = self.rest(x, z) if self.accepts_labels else self.rest(x)
        changed: Tensor = logits + (change if self.gate is None else self.gate * change)
        return changed
