"""Scores of a model: a row per item, a column per label, as `.csv` or `.parquet`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.data.feature_table import read_numbers, write_numbers
from partly.data.paths import plain_file, suffix_of
from partly.data.tables import SUFFIXES, open_table
from partly.files import PathLike


@dataclass(frozen=True)
class Scores:
    """values [N, L], of which items and which labels."""

    values: npt.NDArray[np.float32]
    ids: tuple[str, ...]
    names: tuple[str, ...]


def write_scores(
    path: PathLike,
    scores: npt.NDArray[np.floating[Any]] | Iterable[npt.NDArray[np.floating[Any]]],
    ids: Iterable[str],
    names: Sequence[str],
) -> None:
    """scores: [N, L], or blocks of rows of them. Afterwards the file is there, whole, or as it was before."""
    path = Path(path)
    suffix_of(path, SUFFIXES)
    write_numbers(path, ids, names, [scores] if isinstance(scores, np.ndarray) else scores)


def read_scores(path: PathLike) -> Scores:
    items, ids = read_numbers(open_table(plain_file(path, SUFFIXES)))
    return Scores(items.array, ids, items.names or ())
