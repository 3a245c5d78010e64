"""`tfidf` and `minilm` features of texts, concatenated.

Topics often depend on single words (names, technical terms) that sentence vectors blur, and sentence vectors know words
that the training texts lack. Both have length 1; TF-IDF counts `TFIDF_WEIGHT` times.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from partly.items import Items
from partly.networks.backbones import minilm, tfidf
from partly.networks.backbones.contract import Backbone
from partly.networks.backbones.text_model import TEXTS_AT_A_TIME, TextModel
from partly.registry import About

USUAL = {"freeze": "all"}  # words cannot be trained
ABOUT = About(weights=f"{tfidf.ABOUT.weights} plus sentence vectors, {minilm.ABOUT.weights}")

# Chosen among 1, 1.5 and 2 on package descriptions.
TFIDF_WEIGHT = 1.5


class WordsAndMeaning(Backbone):
    """Texts as bytes [B, LENGTH] -> features [B, width of tfidf + 384]."""

    makes = "vector"
    shares_scale = True
    chunk_size = TEXTS_AT_A_TIME

    def __init__(self, words: tfidf.TfIdf, meaning: TextModel) -> None:
        super().__init__()
        self.tfidf, self.minilm = words, meaning

    @property
    def normalizes(self) -> bool:
        return True

    @property
    def channels(self) -> int:  # type: ignore[override]
        return self.tfidf.width + self.minilm.width

    def fit(self, items: Items) -> None:
        self.tfidf.fit(items)

    def fitted_state(self) -> dict[str, Tensor]:
        return self.tfidf.fitted_state()

    def load_fitted_state(self, tensors: dict[str, Tensor]) -> None:
        self.tfidf.load_fitted_state(tensors)

    def preprocess(self, x: Tensor) -> Tensor:
        """Return texts unchanged: each part preprocesses them itself."""
        return x

    def maps(self, x: Tensor) -> Tensor:
        return torch.cat([TFIDF_WEIGHT * self.tfidf(x), self.minilm(x)], dim=1)

    def stages(self) -> list[nn.Module]:
        return self.minilm.stages()


def backbone(
    shape: tuple[int, ...], *, words: int = 20_000, width: int = 512, length: int = 128, pretrained: bool = True
) -> WordsAndMeaning:
    """Build it for texts [T]. words, width: those of tfidf. length: maximum tokens of minilm."""
    return WordsAndMeaning(
        tfidf.backbone(shape, words=words, width=width), minilm.backbone(shape, length=length, pretrained=pretrained)
    )
