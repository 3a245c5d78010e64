"""A small convolutional network for small images, trained from scratch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from partly.errors import within
from partly.networks.backbones.contract import Backbone, channels_last
from partly.networks.layers import Pooling

# Trained from scratch at the full rate. Maxima capture small objects, means capture textures.
USUAL: dict[str, Any] = {"pooling": "gap+gmp", "rate": 1.0}


class SmallConv(Backbone):
    """Images [B, C, H, W] -> features [B, width]: four blocks, halving the side three times.

    Pooling comes before normalization, which makes it cheaper.
    """

    pooling: Pooling = USUAL["pooling"]
    rate = USUAL["rate"]

    def __init__(self, channels: int, widths: tuple[int, ...] = (16, 32, 64, 96)) -> None:
        super().__init__()
        blocks: list[nn.Module] = []
        self._starts: list[int] = []
        for i, width in enumerate(widths):
            self._starts.append(len(blocks))
            blocks += [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
            blocks += [nn.MaxPool2d(2)] if i < len(widths) - 1 else []
            blocks += [nn.BatchNorm2d(width), nn.ReLU()]
            channels = width
        self.blocks = nn.Sequential(*blocks)
        channels_last(self)
        self.channels = channels

    def maps(self, x: Tensor) -> Tensor:
        made: Tensor = self.blocks(x.contiguous(memory_format=torch.channels_last))
        return made

    def stages(self) -> list[nn.Module]:
        ends = [*self._starts[1:], len(self.blocks)]
        return [self.blocks[start:end] for start, end in zip(self._starts, ends, strict=True)]


def backbone(shape: tuple[int, ...], *, widths: tuple[int, ...] = (16, 32, 64, 96)) -> SmallConv:
    """Build it for images [C, H, W]."""
    within(1, float("inf"), **{f"widths[{i}]": width for i, width in enumerate(widths)})
    return SmallConv(shape[0], tuple(widths))
