"""Candidates among which similar items are searched: a batch, a pool, or a bank that is saved with the model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Candidates:
    """Items to search: features [M, D], scaled predictions `scores` [M, L], known labels z [M, L], index [M] (position
    among the items, -1 for a new one) and side [M] (class, -1 if unknown)."""

    features: Tensor
    scores: Tensor
    z: Tensor
    index: Tensor
    side: Tensor

    @staticmethod
    def concatenate(parts: Iterable[Candidates]) -> Candidates:
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Candidates(*map(torch.cat, columns))

    def with_side(self, y: Tensor, weight: float, classes: int) -> Tensor:
        """Append the one-hot classes of the items to label vectors y [M, L]: [M, L + classes]."""
        return torch.cat([y, weight * F.one_hot(self.side + 1, classes + 1)[:, 1:]], dim=1) if classes else y

    def places(self, others: Candidates) -> Tensor:
        """Return the position of each item among others, or -1: [M]."""
        same = (self.index[:, None] == others.index) & (self.index >= 0)[:, None]
        return torch.where(same.any(dim=1), same.byte().argmax(dim=1), -1)


class Bank(nn.Module):
    """A fixed number of candidates, as of the last `store`."""

    features: Tensor
    scores: Tensor
    z: Tensor
    index: Tensor
    side: Tensor
    ENTRY_BYTES = 5  # bytes per entry of scores and z

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
