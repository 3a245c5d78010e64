"""TF-IDF of words and word pairs, reduced by SVD: latent semantic analysis of the training texts.

Counts are sublinear, 1 + log(count), times the inverse document frequency, normalized to length 1 (scikit-learn's
`TfidfVectorizer`). A truncated SVD makes `width` features, again of length 1. Both are fitted to the training texts,
without labels, and saved with the model.

Reference
    S. Deerwester, S. T. Dumais, G. W. Furnas, T. K. Landauer, R. Harshman. Indexing by Latent Semantic Analysis. JASIS
    1990.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd
from torch import Tensor
from torch.nn import functional as F

from partly.errors import CheckpointError, DataError, within
from partly.items import Items, decode_texts
from partly.networks.backbones.contract import Backbone
from partly.networks.backbones.text_model import TEXTS_AT_A_TIME
from partly.registry import About

USUAL = {"freeze": "all"}  # nothing is trained
ABOUT = About(weights="TF-IDF fitted to the training texts")
WORD = r"(?u)\b\w+\b"
WORDS_TOGETHER = 2  # words and word pairs
MIN_TEXTS_PER_WORD = 2  # 1 if no word occurs in two texts
EXACT_TEXTS = 2500  # the decomposition is exact up to this number
ITERATIONS = 3  # of the randomized decomposition of more texts
MIN_SINGULAR_VALUE = 1e-6  # relative to the largest singular value; smaller directions are noise
BLOCK = 1 << 12  # texts read at a time


class TfIdf(Backbone):
    """Texts as bytes [B, LENGTH] -> features [B, width], fewer for few texts."""

    makes = "vector"
    shares_scale = True
    chunk_size = TEXTS_AT_A_TIME
    words: Tensor  # UTF-8 bytes, one word per line
    idf: Tensor  # [V]
    directions: Tensor  # [V, width], float16

    def __init__(self, most_words: int, width: int) -> None:
        super().__init__()
        self.most_words, self.most_directions = most_words, width
        self.register_buffer("words", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("idf", torch.zeros(0))
        self.register_buffer("directions", torch.zeros(0, width, dtype=torch.float16))

    @property
    def normalizes(self) -> bool:
        return True

    @property
    def channels(self) -> int:  # type: ignore[override]
        return self.directions.shape[1]

    # ---------------------------------------------------------------- fitted to the training texts

    def fit(self, items: Items) -> None:
        counts, vectorizer = self._counts(items)
        directions = _directions(counts, self.most_directions)
        vocabulary = "\n".join(vectorizer.get_feature_names_out())
        tensors = {
            "words": torch.frombuffer(bytearray(vocabulary.encode()), dtype=torch.uint8),
            "idf": torch.from_numpy(vectorizer.idf_.astype(np.float32)),
            "directions": torch.from_numpy(directions.astype(np.float16)),
        }
        self.load_fitted_state(tensors)

    def _counts(self, items: Items) -> tuple[Any, TfidfVectorizer]:
        for least in (MIN_TEXTS_PER_WORD, 1):
            vectorizer = _vectorizer(min_df=least, max_features=self.most_words)
            try:
                return vectorizer.fit_transform(_texts(items)), vectorizer
            except ValueError:  # raised by scikit-learn if no word is left
                continue
        raise DataError("backbone = 'tfidf': there is not a single word in the texts.")

    def fitted_state(self) -> dict[str, Tensor]:
        return {name: self.get_buffer(name) for name in ("words", "idf", "directions")}

    def load_fitted_state(self, tensors: dict[str, Tensor]) -> None:
        kinds = {"words": (torch.uint8, 1), "idf": (torch.float32, 1), "directions": (torch.float16, 2)}
        right = all(name in tensors and (tensors[name].dtype, tensors[name].ndim) == kinds[name] for name in kinds)
        if not right or len(tensors["idf"]) != len(tensors["directions"]):
            raise CheckpointError("backbone = 'tfidf': its words and directions do not fit together.")
        for name in kinds:
            self.register_buffer(name, tensors[name].clone())
        self.__dict__.pop("_transformer", None)

    @cached_property
    def _transformer(self) -> TfidfVectorizer:
        vocabulary = bytes(self.words.cpu().numpy()).decode().split("\n")
        if len(vocabulary) != len(self.idf) or len(set(vocabulary)) != len(vocabulary):
            raise CheckpointError(f"backbone = 'tfidf': {len(vocabulary)} words for {len(self.idf)} weights.")
        vectorizer = _vectorizer(vocabulary=vocabulary)
        vectorizer.idf_ = self.idf.cpu().numpy().astype(np.float64)
        return vectorizer

    # ---------------------------------------------------------------- features

    def preprocess(self, x: Tensor) -> Tensor:
        """Return the TF-IDF of each text, [B, V]."""
        weights = self._transformer.transform(decode_texts(x)).toarray()
        return torch.from_numpy(weights.astype(np.float32)).to(x.device)

    def maps(self, x: Tensor) -> Tensor:
        return F.normalize(x @ self.directions.float(), dim=1)


def backbone(shape: tuple[int, ...], *, words: int = 20_000, width: int = 512) -> TfIdf:
    """Build it for texts [T]. words: size of the vocabulary, the most frequent words and pairs. width: features."""
    within(1, 1 << 20, words=words)
    within(1, 1 << 13, width=width)
    return TfIdf(words, width)


def _vectorizer(**how: Any) -> TfidfVectorizer:
    return TfidfVectorizer(token_pattern=WORD, ngram_range=(1, WORDS_TOGETHER), sublinear_tf=True, **how)


def _texts(items: Items) -> Iterator[str]:
    for start in range(0, len(items), BLOCK):
        yield from decode_texts(items.take(slice(start, start + BLOCK)))


def _directions(x: Any, width: int) -> npt.NDArray[np.float64]:
    """Return the leading right singular vectors of a sparse matrix [N, V], [V, width or fewer].

    They are computed in float64 and rounded, so that the number of threads does not matter; the largest entry of each
    vector is positive.
    """
    if x.shape[0] <= EXACT_TEXTS:
        squares, left = scipy.linalg.eigh((x @ x.T).toarray())
        squares, left = squares[::-1][:width], left[:, ::-1][:, :width]
        significant = squares > MIN_SINGULAR_VALUE**2 * squares[0]
        right = x.T @ left[:, significant] / np.sqrt(squares[significant])
    else:
        _, _, right = randomized_svd(x, width, n_iter=ITERATIONS, random_state=0)
        right = right.T
    largest = np.take_along_axis(right, np.abs(right).argmax(axis=0)[None], axis=0)
    signed: npt.NDArray[np.float64] = right * np.sign(largest)
    return signed
