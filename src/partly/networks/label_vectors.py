"""Vectors of labels that say what their names mean: of words, from a file, or of the names as texts, by `minilm`.

What may be given as `vectors`:

- "minilm": each name as a text, 384 numbers;
- a file of word vectors (`.txt`, `.vec`, also `.gz`): that of the name where it is there itself (`hot dog` as `hot_dog`
  too), else the mean of its words; each as it is written, else in lower case;
- a file of features (`.csv`, `.parquet`, `.npz`) whose ids are the names of the labels.
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
from partly.errors import DataError, SettingError, listing, within
from partly.networks import backbones

MINILM, MINILM_SIZE = "minilm", 384
SIZE = 300  # numbers of a vector, as word vectors usually have
WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def size_of(vectors: str | None, size: int | None) -> int:
    """How many numbers a vector has. Nothing is read: a saved model comes without the file."""
    if size is None:
        return MINILM_SIZE if vectors == MINILM else SIZE
    within(1, float("inf"), size=size)
    return size


def label_vectors(source: str, names: Sequence[str], size: int) -> Tensor:
    """A vector for each of these labels, [L, size]."""
    if source == MINILM:
        return _embedded(names, size)
    if are_word_vectors(Path(source)):
        return _of_words(Path(source), names, size)
    there = data.read(source)
    if there.items.shape != (size,):
        raise SettingError(
            f"{source}: vectors of {there.items.shape[0]} numbers for size = {size}. Make the two the same."
        )
    return there.items.take(torch.from_numpy(find_positions(names, there.labels.ids, source, "label")))


def _embedded(names: Sequence[str], size: int) -> Tensor:
    if size != MINILM_SIZE:
        raise SettingError(f"vectors = 'minilm' has {MINILM_SIZE} numbers, not size = {size}. Leave size out.")
    made: Tensor = backbones.find(MINILM).make((1,)).embed([" ".join(WORD.findall(name)) or name for name in names])
    return made.clone()  # one that may be learned from


def _of_words(path: Path, names: Sequence[str], size: int) -> Tensor:
    wanted = {form for name in names for word in (*_wholes(name), *WORD.findall(name)) for form in (word, word.lower())}
    found = read_word_vectors(path, wanted, size)
    words = {name: _words(name, found) for name in names}
    lost = {name: [word for word in words[name] if word not in found] for name in names}
    missing = [name for name in names if lost[name]]
    if missing:
        told = (f"{name!r}: {', '.join(_with_nearest(path, word) for word in lost[name])}" for name in missing)
        raise DataError(
            f"{path}: there are no vectors for words of {len(missing)} of the {len(names)} labels"
            + listing(told, len(missing))
            + "\nRename the labels, or give a table whose ids are the names of the labels."
        )
    return torch.from_numpy(np.stack([np.mean([found[word] for word in words[name]], axis=0) for name in names]))


def _words(name: str, found: Vectors) -> list[str]:
    """Whose mean the vector of a label is: of the whole name where it has one, else of its words; as they are written,
    else in lower case."""
    whole = [word if word in found else word.lower() for word in _wholes(name)]
    there = [word for word in whole if word in found]
    return there[:1] or [word if word in found else word.lower() for word in WORD.findall(name)] or [name]


def _wholes(name: str) -> tuple[str, str]:
    return name, "_".join(name.split())


def _with_nearest(path: Path, word: str) -> str:
    near = nearest(path, word)
    return f"{word!r} (nearest: {', '.join(near)})" if near else repr(word)
