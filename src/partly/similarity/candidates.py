"""Items among which similar ones are sought: a batch of them, a pool, or a bank that is kept with the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Candidates:
    """features [M, D], scores [M, L] (labels as the network sees them), what is known z [M, L], index [M] (position
    among the items, -1 for a new one) and side [M] (class, -1 where not said)."""

    features: Tensor
    scores: Tensor
    z: Tensor
    index: Tensor
    side: Tensor

    @staticmethod
    def joined(parts: Iterable[Candidates]) -> Candidates:
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Candidates(*map(torch.cat, columns))

    def with_side(self, y: Tensor, weight: float, classes: int) -> Tensor:
        """Label vectors y [M, L] with the items' classes joined to them: [M, L + classes]."""
        return torch.cat([y, weight * F.one_hot(self.side + 1, classes + 1)[:, 1:]], dim=1) if classes else y

    def places(self, others: Candidates) -> Tensor:
        """Where each stands among the others, -1 where it does not: [M]."""
        same = (self.index[:, None] == others.index) & (self.index >= 0)[:, None]
        return torch.where(same.any(dim=1), same.byte().argmax(dim=1), -1)


class Bank(nn.Module):
    """As many candidates as it has room for, as they were when they were stored."""

    features: Tensor
    scores: Tensor
    z: Tensor
    index: Tensor
    side: Tensor
    ENTRY_BYTES = 5  # of scores and z

    def __init__(self, room: int, width: int, labels: int) -> None:
        super().__init__()
        self.register_buffer("features", torch.zeros(room, width))
        self.register_buffer("scores", torch.zeros(room, labels))
        self.register_buffer("z", torch.zeros(room, labels, dtype=torch.int8))
        self.register_buffer("index", torch.full((room,), -1))
        self.register_buffer("side", torch.full((room,), -1))

    def __len__(self) -> int:
        return len(self.index)

    def store(self, found: Candidates) -> None:
        for name, part in vars(found).items():
            self.get_buffer(name).copy_(part)

    def candidates(self) -> Candidates:
        return Candidates(self.features, self.scores, self.z, self.index, self.side)
