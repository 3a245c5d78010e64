"""Word vectors in the text form of GloVe and word2vec, also packed (`.gz`): a line is a word and its numbers. A first
line with two whole numbers, how many words and how many numbers, is left alone.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from partly.data.compression import open_decompressed
from partly.data.paths import PACKED, check_file
from partly.errors import DataError, SettingError

SUFFIXES = (".txt", ".vec", ".txt.gz", ".vec.gz")
Vectors = dict[str, npt.NDArray[np.float32]]


def are_word_vectors(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def read_word_vectors(path: Path, wanted: Collection[str], size: int) -> Vectors:
    """The vectors [size] of those of the wanted words that are in the file; of all others only the word is looked
    at."""
    found: Vectors = {}
    for number, (word, numbers) in enumerate(_lines(path), start=1):
        if number == 1 and not (word.isdecimal() and numbers.strip().isdecimal()):
            _check_size(path, len(numbers.split()), size)  # before all of a large file is read
        elif number == 1:
            _check_size(path, int(numbers), size)
            continue
        if word in wanted and word not in found:
            found[word] = _vector(numbers, size, f"{path}:{number}: {word!r}")
    return found


def nearest(path: Path, word: str) -> list[str]:
    """Words of the file that look like this one and begin like it."""
    there = (other for other, _ in _lines(path) if other[:1] == word[:1])
    return difflib.get_close_matches(word, set(there), n=2, cutoff=0.75)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Word and numbers of each line."""
    check_file(path, SUFFIXES)
    raw = open_decompressed(path, PACKED.get(path.suffix.lower()))
    try:
        with io.TextIOWrapper(raw, encoding="utf-8", newline="\n") as file:
            for line in file:
                word, _, numbers = line.partition(" ")
                yield word, numbers
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _check_size(path: Path, there: int, size: int) -> None:
    if there != size:
        raise SettingError(f"{path}: vectors of {there} numbers for size = {size}. Make the two the same.")


def _vector(numbers: str, size: int, place: str) -> npt.NDArray[np.float32]:
    try:
        vector = np.array(numbers.split(), dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{place}: not numbers ({error}).") from None
    if vector.shape != (size,) or not np.isfinite(vector).all():
        raise DataError(f"{place}: {len(vector)} numbers, where {size} finite ones are wanted.")
    return vector
