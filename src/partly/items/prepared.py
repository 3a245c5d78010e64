"""Items whose features are computed once: what a fixed first layer of a network makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from partly.items.contract import Items


@dataclass(frozen=True, eq=False)
class Prepared:
    """Features [B, W] that a network would compute from x [B, ...]. Networks accept them instead of x."""

    features: Tensor

    def __len__(self) -> int:
        return len(self.features)

    @property
    def shape(self) -> torch.Size:
        return self.features.shape

    @property
    def device(self) -> torch.device:
        return self.features.device

    def to(self, device: Any) -> Prepared:
        return Prepared(self.features.to(device))


class PreparedItems:
    """Items that are read as their features [N, W]; all else is unchanged."""

    stream = None  # there is nothing to read ahead

    def __init__(self, items: Items, features: Tensor) -> None:
        self.items, self.features = items, features

    @classmethod
    def of(cls, items: Items, features: Tensor) -> Items:
        """Return items that are read as these features."""
        return cast(Items, cls(items, features))

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Any) -> Items:
        return self.of(self.items[rows], self.features[rows])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.items, name)

    def take(self, index: Tensor | slice) -> Prepared:
        return Prepared(self.features[index])
