"""Scores of a model: a row an item, a column a label, as `.csv` or `.parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.data.features import Features, read_numbers
from partly.data.files import PathLike, plain_file, suffix_of
from partly.data.names import refuse_unwritable
from partly.data.tables import SUFFIXES, open_table, write_table
from partly.data.wide import ID
from partly.errors import DataError


def write_scores(path: PathLike, scores: npt.NDArray[np.floating], ids: Sequence[str], names: Sequence[str]) -> None:
    """scores: [N, L]."""
    path = Path(path)
    suffix_of(path, SUFFIXES)
    refuse_unwritable(ids, names, path)
    if ID in names:
        raise DataError(f"{path}: a label cannot be named {ID!r} here: that column holds the ids. Rename it.")
    schema = pa.schema([(ID, pa.string()), *((name, pa.float32()) for name in names)])
    columns = np.ascontiguousarray(scores.T, np.float32)
    write_table(path, schema, iter([pa.record_batch([pa.array(ids, pa.string()), *map(pa.array, columns)], schema)]))


def read_scores(path: PathLike) -> tuple[Features, tuple[str, ...], tuple[str, ...]]:
    """(scores [N, L], ids, names)."""
    return read_numbers(open_table(plain_file(path, SUFFIXES)))
