"""Features that come in several kinds, side by side."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class Members(nn.Module):
    """Kinds of features by name, one after the other: [B, sum of widths]. A linear read-out of all of them is a sum of
    one for each kind, so that a solver may take them one by one."""

    def __init__(self, parts: Mapping[str, nn.Module], widths: Mapping[str, int]) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(parts)
        self.spans: dict[str, slice] = {}
        start = 0
        for name, width in widths.items():
            self.spans[name] = slice(start, start + width)
            start += width
        self.width = start
        self.as_given = [type(part) for part in parts.values()] == [nn.Identity]

    def forward(self, x: Tensor) -> Tensor:
        if self.as_given:  # as those of a linear head, whose step takes little longer than a few calls
            return x
        found = [part(x) for part in self.parts.values()]
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)
