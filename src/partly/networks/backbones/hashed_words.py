"""A bag of words for texts, learned from nothing: every word has a vector, found by its hash, and a text is their mean.

No vocabulary is kept and no weights are fetched; words that share a place share a vector.
"""

from __future__ import annotations

import re
import zlib

import torch
from torch import Tensor, nn

from partly.errors import within
from partly.items import texts_of

WORD = re.compile(r"\w+")


class HashedWords(nn.Module):
    """Texts as bytes [B, T] -> features [B, width]."""

    size = None
    normalises = True  # bytes are no numbers to be standardised

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(places, width, mode="mean")
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        found = [self._places(text) for text in texts_of(x)]
        starts = torch.tensor([0, *map(len, found)][:-1]).cumsum(0)
        joined = torch.tensor([place for places in found for place in places], dtype=torch.int64)
        features: Tensor = self.words(joined.to(x.device), starts.to(x.device))
        return features

    def _places(self, text: str) -> list[int]:
        return [zlib.crc32(word.encode()) % self.words.num_embeddings for word in WORD.findall(text.casefold())]


def backbone(shape: tuple[int, ...], *, places: int = 1 << 14, width: int = 128) -> HashedWords:
    """For texts [T]."""
    within(1, 1 << 24, places=places, width=width)
    return HashedWords(places, width)
