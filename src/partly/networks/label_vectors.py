"""Vectors that represent the meaning of label names: `vectors` of a head or a method.

"minilm" embeds each name as a text, in 384 numbers. Any other value is a file, which the caller's `ReadVectors` reads
(see `partly.data.label_vectors`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from torch import Tensor

from partly.errors import SettingError, within
from partly.networks import backbones

MINILM, MINILM_SIZE = "minilm", 384
SIZE = 300  # numbers per vector, as word vectors usually have
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
ReadVectors = Callable[[str, Sequence[str], int], Tensor]  # file, names, numbers per vector -> [L, size]


def vector_size(vectors: str | None, size: int | None) -> int:
    """Return the numbers per vector without reading the file, which a saved model does without."""
    if size is None:
        return MINILM_SIZE if vectors == MINILM else SIZE
    within(1, float("inf"), size=size)
    return size


def label_vectors(source: str, names: Sequence[str], size: int, read: ReadVectors | None) -> Tensor:
    """Return a vector per label, [L, size]."""
    if source != MINILM:
        if read is None:
            raise SettingError(f"vectors = {source!r}: no reader for files of vectors is available.")
        return read(source, names, size)
    if size != MINILM_SIZE:
        raise SettingError(f"vectors = 'minilm' has {MINILM_SIZE} numbers, not size = {size}. Leave size out.")
    return embed_names(names)


def embed_names(names: Sequence[str]) -> Tensor:
    """Return the sentence vectors of label names, [L, 384]."""
    vectors: Tensor = backbones.find(MINILM).make((1,)).embed([" ".join(WORD.findall(name)) or name for name in names])
    return vectors.clone()  # made in inference mode; a copy can require gradients
