"""Vectors of labels from a file, looked up by the labels' names.

- A file of word vectors (`.txt`, `.vec`, also `.gz`): the vector of the whole name if it has one (`hot dog` also as
  `hot_dog`), else the mean over its words. Each is looked up as written, then in lower case.
- A file of features (`.csv`, `.parquet`, `.npz`) whose ids are the names of the labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from partly import data
from partly.data.matching import find_positions
from partly.data.word_vectors import Vectors, are_word_vectors, nearest, read_word_vectors
from partly.errors import DataError, SettingError, listing

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def read_label_vectors(source: str, names: Sequence[str], size: int) -> Tensor:
    """Return a vector per label, [L, size]."""
    if are_word_vectors(Path(source)):
        return _from_words(Path(source), names, size)
    table = data.read(source)
    if table.items.shape != (size,):
        raise SettingError(
            f"{source}: vectors of {table.items.shape[0]} numbers for size = {size}. Make the two the same."
        )
    return table.items.take(torch.from_numpy(find_positions(names, table.labels.ids, source, "label")))


def _from_words(path: Path, names: Sequence[str], size: int) -> Tensor:
    spellings = {
        w for name in names for word in (*_whole_names(name), *WORD.findall(name)) for w in (word, word.lower())
    }
    vectors = read_word_vectors(path, spellings, size)
    words_of = {name: _words(name, vectors) for name in names}
    missing = {name: [word for word in words_of[name] if word not in vectors] for name in names}
    incomplete = [name for name in names if missing[name]]
    if incomplete:
        lines = (f"{name!r}: {', '.join(_with_nearest(path, word) for word in missing[name])}" for name in incomplete)
        raise DataError(
            f"{path}: there are no vectors for words of {len(incomplete)} of the {len(names)} labels"
            + listing(lines, len(incomplete))
            + "\nRename the labels, or give a table whose ids are the names of the labels."
        )
    return torch.from_numpy(np.stack([np.mean([vectors[word] for word in words_of[name]], axis=0) for name in names]))


def _words(name: str, vectors: Vectors) -> list[str]:
    """Return the words whose mean is the vector of a label: the whole name if it has a vector, else its words."""
    whole = [word if word in vectors else word.lower() for word in _whole_names(name)]
    with_vector = [word for word in whole if word in vectors]
    return with_vector[:1] or [word if word in vectors else word.lower() for word in WORD.findall(name)] or [name]


def _whole_names(name: str) -> tuple[str, str]:
    return name, "_".join(name.split())


def _with_nearest(path: Path, word: str) -> str:
    near = nearest(path, word)
    return f"{word!r} (nearest: {', '.join(near)})" if near else repr(word)
