"""Scores from a file or an array: probabilities or logits of a language model, an older model or a rule.

A file is a table, wide (the column `item` and one per label) or long (`item`, `label` and `score`), as Parquet or CSV,
or an .npz archive with `scores`, and optionally `ids` and `names`. A blank cell, or an entry that a long file does not
list, is no opinion.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.atomic_io import PathLike, sha256, sha256_of
from partly.data.formats.feature_table import number_blocks
from partly.data.paths import check_file
from partly.data.score_files import (
    find_value_column,
    read_long,
    read_score_archive,
    refuse_repeated,
    to_dense,
    to_matrix,
)
from partly.data.table_layout import ID
from partly.data.tables import SUFFIXES, open_table
from partly.errors import DataError, did_you_mean, listing
from partly.items import Items
from partly.labels.names import Names
from partly.teachers.contract import Block, Rows, Teacher, Vocabulary, ids_of, items_per_block, names_of
from partly.teachers.large_arrays import stack


class Scores(Teacher):
    """Take scores from a file or an array.

    Parameters
    ----------
    source : path, array [N, L] or pandas table
        Any real numbers, larger for a likelier yes; NaN for no opinion. Rows of a file or a table are matched by the
        ids of the items, columns by the names of the labels. Rows and columns of an array are in the order of the data.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> X = partly.items.features(np.zeros((2, 3)))
    >>> partly.teachers.Scores([[0.9, np.nan], [0.2, 0.4]]).scores(X, ["cat", "dog"])
    array([[0.9, nan],
           [0.2, 0.4]], dtype=float32)
    """

    caches_scores = False
    ids: Names | None  # of the rows; None: by position
    names: Names | None  # of the columns; None: by position
    matrix: Any  # [N, L], dense or sparse; entries that a sparse matrix does not store are no opinion

    def __init__(self, source: PathLike | npt.ArrayLike) -> None:
        self.path = Path(source) if isinstance(source, str | Path) else None
        if self.path is not None:
            self.ids, self.names, self.matrix = _read(self.path)
        else:
            self.ids, self.names, self.matrix = _from_array(source)

    def describe(self) -> str:
        return "scores" if self.path is None else self.path.name

    def identity(self) -> dict[str, Any]:
        if self.path is not None:
            return {"kind": "scores", "path": str(self.path.absolute()), "sha256": sha256_of(self.path)}
        return {"kind": "scores", "path": None, "sha256": sha256(np.ascontiguousarray(self.matrix).tobytes())}

    @classmethod
    def from_identity(cls, identity: Mapping[str, Any]) -> Scores | None:
        """Open the file in `identity` again; return None if it no longer exists, or the scores were an array."""
        path = identity.get("path")
        return cls(path) if path is not None and Path(path).is_file() else None

    def score_blocks(self, items: Items, labels: Vocabulary) -> Iterator[Block]:
        read, size = self.reader(items, labels), items_per_block(len(names_of(labels)))
        for start in range(0, len(items), size):
            yield read(slice(start, min(start + size, len(items))))

    def reader(self, items: Items, labels: Vocabulary) -> Callable[[Rows], Block]:
        names = names_of(labels)
        positions, columns = self._find_rows(len(items), ids_of(labels)), self._find_columns(names)
        in_order = np.array_equal(columns, np.arange(self.matrix.shape[1]))
        present_columns = np.flatnonzero(columns >= 0)

        def read(rows: Rows) -> Block:
            wanted = positions[rows]
            if in_order and (wanted >= 0).all():
                return np.asarray(to_dense(self.matrix, wanted), np.float32)
            block = np.full((len(wanted), len(names)), np.nan, np.float32)
            present = np.flatnonzero(wanted >= 0)
            stored = to_dense(self.matrix, wanted[present])
            block[np.ix_(present, present_columns)] = stored[:, columns[present_columns]]
            return block

        return read

    def with_ids(self, ids: Sequence[str]) -> Scores:
        """Return the same scores with ids for the rows, if they are by position and have one row per id."""
        if self.ids is not None or self.matrix.shape[0] != len(ids):
            return self
        named = copy.copy(self)
        named.ids = tuple(ids)
        return named

    def _find_rows(self, count: int, ids: Names | None) -> npt.NDArray[np.int64]:
        """Return the row of each item in the matrix, -1 for none."""
        if self.ids is None or (ids is None and self.path is None):
            if self.matrix.shape[0] != count:
                raise DataError(
                    f"{self.describe()}: scores of {self.matrix.shape[0]} items, but the data has {count}. Give a row "
                    "per item, in the same order, or a table with ids."
                )
            return np.arange(count)
        return _find_positions(self.ids, ids or tuple(map(str, range(count))), self.describe(), "item")

    def _find_columns(self, names: Names) -> npt.NDArray[np.int64]:
        """Return the column of each label in the matrix, -1 for none."""
        if self.names is None:
            if self.matrix.shape[1] != len(names):
                raise DataError(
                    f"{self.describe()}: scores of {self.matrix.shape[1]} labels, but the data has {len(names)}. Give "
                    "a column per label, in the same order, or a table with their names."
                )
            return np.arange(len(names))
        return _find_positions(self.names, names, self.describe(), "label")


def _find_positions(own: Names, wanted: Names, where: str, what: str) -> npt.NDArray[np.int64]:
    """Return the position of each wanted name in the file, -1 for a missing one.

    A file may lack some names, or hold additional ones. If it does both, an additional name may be a misspelling of a
    missing one, and is refused: every additional label; an additional item if it differs from a missing one only in
    case, spaces, folder or suffix, or if more than half of the items are missing.
    """
    position_of = {name: i for i, name in enumerate(own)}
    positions = np.array([position_of.get(name, -1) for name in wanted], np.int64)
    missing = [name for name, position in zip(wanted, positions, strict=True) if position < 0]
    expected = set(wanted)
    additional = [name for name in own if name not in expected]
    if what == "item" and 2 * len(missing) <= len(wanted):
        plain_ids = set(map(_plain_id, missing))
        additional = [name for name in additional if _plain_id(name) in plain_ids]
    if len(wanted) and (len(missing) == len(wanted) or (missing and additional)):
        lines = (f"{name!r}{_suggest(name, wanted) if what == 'label' else ''}" for name in additional)
        raise DataError(
            f"{where}: {len(missing)} of the {len(wanted)} {what}s have no scores, and it holds {len(additional)} "
            f"{what}s that are not in the data"
            + listing(lines, len(additional))
            + f"\nName the {what}s as the data does."
        )
    return positions


def _plain_id(name: str) -> str:
    """Return an id without case, spaces, folder and suffix."""
    return re.sub(r"\.[a-z][a-z0-9]*$", "", name.strip().casefold().rpartition("/")[2])


def _suggest(name: str, wanted: Names) -> str:
    return f".{did_you_mean(name, wanted)}"


def _read(path: Path) -> tuple[Names | None, Names | None, Any]:
    if path.suffix == ".npz":
        return read_score_archive(path)
    table = open_table(check_file(path, SUFFIXES))
    header = list(table.header)
    if ID not in header:
        raise DataError(
            f"{path}: there is no column {ID!r} with the ids of the items; the columns are {', '.join(header[:8])}."
        )
    value = find_value_column(header)
    if value is not None:
        return read_long(table, value)
    names = [name for name in header if name != ID]
    ids: list[str] = []

    def blocks() -> Iterator[Block]:
        for block_ids, values in number_blocks(table, names):
            ids.extend(block_ids)
            yield values.astype(np.float32)

    matrix = stack(blocks(), len(names))
    refuse_repeated(ids, path, "item")
    return tuple(ids), tuple(names), matrix


def _from_array(scores: Any) -> tuple[Names | None, Names | None, Any]:
    ids = names = None
    if hasattr(scores, "iloc") and hasattr(scores, "columns"):
        names = tuple(map(str, scores.columns))
        ids = tuple(map(str, scores.index))
        if ids == tuple(map(str, range(len(ids)))):
            ids = None
        scores = scores.to_numpy()
    return ids, names, to_matrix(scores, "scores")
