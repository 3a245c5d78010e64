"""Modules that turn features of text encoders, image classifiers and dual encoders into scores of labels.

Text encoders and dual encoders score by the cosine with a label's phrases. An image classifier scores by ConSE: the
probabilities of its own classes, spread over the labels by how similar the names of class and label are.

Paper: M. Norouzi et al. Zero-Shot Learning by Convex Combination of Semantic Embeddings. ICLR 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.atomic_io import sha256
from partly.networks.backbones import efficientnet_lite, minilm
from partly.networks.backbones.text_model import TextModel
from partly.teachers.cache import load_or_compute

Embed = Callable[[Sequence[str]], Tensor]
TEMPERATURE = 0.04  # of the similarity of class and label names
MIN_PROBABILITY = 1e-6
MINILM_WIDTH = 384
TEXTS_AT_A_TIME = 512
CLASSES = Path(__file__).parent / "imagenet_classes.txt"


class CosineScorer(nn.Module):
    """Features [B, D] -> the mean cosine with the phrases of each label, [B, L]; NaN without a phrase."""

    vectors: Tensor

    def __init__(self, phrases: Sequence[Sequence[str]], embed: Embed, width: int | None = None) -> None:
        super().__init__()
        self.width = width  # number of columns to use, the last ones; None: all
        self.register_buffer("vectors", label_vectors(phrases, embed))

    def forward(self, x: Tensor) -> Tensor:
        if self.width is not None:
            x = x[:, -self.width :]
        return F.normalize(x.float(), dim=1) @ self.vectors.T


class ConseScorer(nn.Module):
    """Features [B, 1280] of EfficientNet-Lite -> log probabilities of the labels, [B, L]; NaN without a phrase."""

    weight: Tensor
    bias: Tensor
    spread: Tensor

    def __init__(self, number: int, phrases: Sequence[Sequence[str]], embed: Embed) -> None:
        super().__init__()
        *_, weight, bias = efficientnet_lite.load_weights(number).values()
        self.register_buffer("weight", weight.float())
        self.register_buffer("bias", bias.float())
        similarity = class_similarity(label_vectors(phrases, embed), embed)
        self.register_buffer("spread", torch.softmax(similarity / TEMPERATURE, dim=0))  # [classes, L]

    def forward(self, x: Tensor) -> Tensor:
        p = torch.softmax(F.linear(x.float(), self.weight, self.bias), dim=1)
        return torch.log(p @ self.spread + MIN_PROBABILITY)


def label_vectors(phrases: Sequence[Sequence[str]], embed: Embed) -> Tensor:
    """Return the mean of the unit vectors of each label's phrases, [L, D]; NaN for a label without any."""
    flat = [phrase for several in phrases for phrase in several]
    vectors = iter(embed(flat))
    means = [torch.stack([next(vectors) for _ in several]).mean(dim=0) if several else None for several in phrases]
    nothing = torch.full_like(next(mean for mean in means if mean is not None), torch.nan)
    return torch.stack([nothing if mean is None else mean for mean in means])


def class_similarity(vectors: Tensor, embed: Embed) -> Tensor:
    """Return the similarity of ImageNet classes and labels, [classes, L].

    It is the mean of two cosines: with all synonyms of the class in one phrase, and with the nearest synonym.
    """
    lines = class_names()
    synonyms = [(i, word) for i, line in enumerate(lines) for word in line.split(", ")]
    texts = list(dict.fromkeys([*lines, *(word for _, word in synonyms)]))
    at = {text: i for i, text in enumerate(texts)}
    cosines = embed(texts) @ vectors.T
    whole = cosines[[at[line] for line in lines]]
    single = cosines[[at[word] for _, word in synonyms]]
    index = torch.tensor([i for i, _ in synonyms])[:, None].expand(-1, single.shape[1])
    nearest = torch.full_like(whole, -torch.inf).scatter_reduce(0, index, single, "amax")
    return (whole + nearest) / 2


@cache
def class_names() -> tuple[str, ...]:
    """Return the words of each ImageNet class, in the order of the classifier's outputs."""
    lines = CLASSES.read_text("utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


def minilm_embed(texts: Sequence[str]) -> Tensor:
    """Return the sentence vectors of texts, [N, 384]; vectors are cached."""
    return embed_with_cache(texts, "minilm", lambda some: _minilm().embed(some), MINILM_WIDTH)


def embed_with_cache(texts: Sequence[str], encoder: str, embed: Embed, width: int) -> Tensor:
    """Return the vectors of texts. `encoder` names the encoder in the key of the cache."""
    if not texts:
        return torch.zeros(0, width)
    key = {"encoder": encoder, "texts": sha256("\0".join(texts).encode()), "count": len(texts)}
    vectors = load_or_compute(
        key,
        (len(texts), width),
        lambda rows: embed(texts[rows]).numpy(),
        TEXTS_AT_A_TIME,
        "Embedding label names",
    )
    return torch.from_numpy(np.array(vectors))


@cache
def _minilm() -> TextModel:
    return minilm.backbone((1,))
