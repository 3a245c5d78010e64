"""Word vectors in the text format of GloVe and word2vec, optionally compressed (`.gz`): one word per line.

A first line with two whole numbers (words and dimensions) is skipped.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from partly.data.compression import open_decompressed
from partly.data.paths import CODECS, check_file
from partly.errors import DataError, SettingError

SUFFIXES = (".txt", ".vec", ".txt.gz", ".vec.gz")
Vectors = dict[str, npt.NDArray[np.float32]]


def are_word_vectors(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def read_word_vectors(path: Path, wanted: Collection[str], size: int) -> Vectors:
    """Read the vectors [size] of the wanted words that are in the file."""
    vectors: Vectors = {}
    for number, (word, numbers) in enumerate(_lines(path), start=1):
        if number == 1 and not (word.isdecimal() and numbers.strip().isdecimal()):
            _check_size(path, len(numbers.split()), size)  # before a large file is read
        elif number == 1:
            _check_size(path, int(numbers), size)
            continue
        if word in wanted and word not in vectors:
            vectors[word] = _vector(numbers, size, f"{path}:{number}: {word!r}")
    return vectors


def nearest(path: Path, word: str) -> list[str]:
    """Return similar words of the file with the same first letter."""
    candidates = (other for other, _ in _lines(path) if other[:1] == word[:1])
    return difflib.get_close_matches(word, set(candidates), n=2, cutoff=0.75)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the word and the numbers of each line."""
    check_file(path, SUFFIXES)
    raw = open_decompressed(path, CODECS.get(path.suffix.lower()))
    try:
        with io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as file:
            for line in file:
                word, _, numbers = line.partition(" ")
                yield word, numbers
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _check_size(path: Path, actual: int, size: int) -> None:
    if actual != size:
        raise SettingError(f"{path}: vectors of {actual} numbers for size = {size}. Make the two the same.")


def _vector(numbers: str, size: int, place: str) -> npt.NDArray[np.float32]:
    try:
        vector = np.array(numbers.split(), dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{place}: not numbers ({error}).") from None
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise DataError(f"{place}: {len(vector)} numbers instead of {size} finite ones.")
    return vector
