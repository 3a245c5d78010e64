"""Bag of hashed words for texts, trained from scratch: the mean of word vectors found by hash.

There is no vocabulary, and no weights are downloaded; words with the same hash share a vector.
"""

from __future__ import annotations

import re
import zlib

import torch
from torch import Tensor, nn

from partly.errors import within
from partly.items import decode_texts
from partly.networks.backbones.contract import Backbone

USUAL = {"rate": 1.0}  # nothing is pretrained
WORD = re.compile(r"\w+")
PADDING_INDEX = 0


class HashedWords(Backbone):
    """Texts as bytes [B, T] -> features [B, width]."""

    makes = "vector"

    def __init__(self, places: int, width: int) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(1 + places, width, mode="mean", padding_idx=PADDING_INDEX)
        self.channels = width

    @property
    def normalizes(self) -> bool:
        return True

    def preprocess(self, x: Tensor) -> Tensor:
        """Return the vector indices of the words, [B, words], padded."""
        places = [torch.tensor(self._places(text), dtype=torch.int64) for text in decode_texts(x)]
        return nn.utils.rnn.pad_sequence(places, batch_first=True, padding_value=PADDING_INDEX).to(x.device)

    def maps(self, x: Tensor) -> Tensor:
        features: Tensor = self.words(x)
        return features

    def _places(self, text: str) -> list[int]:
        places = self.words.num_embeddings - 1
        return [1 + zlib.crc32(word.encode()) % places for word in WORD.findall(text.casefold())] or [PADDING_INDEX]


def backbone(shape: tuple[int, ...], *, places: int = 1 << 14, width: int = 128) -> HashedWords:
    """For texts [T]."""
    within(1, 1 << 24, places=places, width=width)
    return HashedWords(places, width)
