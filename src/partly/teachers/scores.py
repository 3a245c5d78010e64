"""Scores of anybody's making: probabilities or logits of a language model, an older model, a rule.

A file is a table, wide (the column `item` and one per label) or long (`item`, `label` and `score`), as Parquet or CSV,
or an .npz archive with `scores`, and optionally `ids` and `names`. A blank cell, or an entry that a long file does not
list, is no opinion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.atomic_io import PathLike, sha256, sha256_of
from partly.data.formats.feature_table import number_blocks
from partly.data.npz import as_text, read_npz
from partly.data.paths import check_file
from partly.data.table_layout import ID
from partly.data.tables import SUFFIXES, open_table, text_column
from partly.errors import DataError, did_you_mean, listing
from partly.items import Items
from partly.labels.names import Names
from partly.teachers.contract import Block, Teacher, Vocabulary, ids_of, names_of

LABEL = "label"
VALUES = ("score", "probability", "logit", "confidence", "value")  # names of the column of scores in a long file
ITEMS_AT_A_TIME = 4096


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

    ids: Names | None  # of the rows; None: by position
    names: Names | None  # of the columns; None: by position
    matrix: Any  # [N, L], dense or sparse: of a sparse one, what is not stored is no opinion

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
        """Read the file again that `identity` names; None where it is gone or was an array."""
        path = identity.get("path")
        return cls(path) if path is not None and Path(path).is_file() else None

    def score_blocks(self, items: Items, labels: Vocabulary) -> Iterator[Block]:
        names = names_of(labels)
        rows = self._rows(len(items), ids_of(labels))
        columns = self._columns(names)
        for start in range(0, len(items), ITEMS_AT_A_TIME):
            some = rows[start : start + ITEMS_AT_A_TIME]
            block = np.full((len(some), len(names)), np.nan, np.float32)
            here = np.flatnonzero(some >= 0)
            block[np.ix_(here, np.flatnonzero(columns >= 0))] = self._dense(some[here])[:, columns[columns >= 0]]
            yield block

    def _dense(self, rows: npt.NDArray[np.int64]) -> Block:
        """Scores of these rows, NaN where none is listed."""
        if isinstance(self.matrix, np.ndarray):
            return np.asarray(self.matrix[rows], np.float32)
        part = self.matrix[rows].tocoo()
        block = np.full(part.shape, np.nan, np.float32)
        block[part.row, part.col] = part.data
        return block

    def _rows(self, count: int, ids: Names | None) -> npt.NDArray[np.int64]:
        """Positions of the items in the matrix, -1 for none."""
        if self.ids is None or (ids is None and self.path is None):
            if self.matrix.shape[0] != count:
                raise DataError(
                    f"{self.describe()}: scores of {self.matrix.shape[0]} items; there are {count} here. Give a row "
                    "per item, in the same order, or a table with ids."
                )
            return np.arange(count)
        return _places(self.ids, ids or tuple(map(str, range(count))), self.describe(), "item")

    def _columns(self, names: Names) -> npt.NDArray[np.int64]:
        if self.names is None:
            if self.matrix.shape[1] != len(names):
                raise DataError(
                    f"{self.describe()}: scores of {self.matrix.shape[1]} labels; there are {len(names)} here. Give a "
                    "column per label, in the same order, or a table with their names."
                )
            return np.arange(len(names))
        return _places(self.names, names, self.describe(), "label")


def _places(own: Names, wanted: Names, where: str, what: str) -> npt.NDArray[np.int64]:
    """Positions of the wanted words among a file's own, -1 for those it does not have.

    A file may lack some, or hold more. Where it lacks some and holds others, these are refused by name.
    """
    at = {word: i for i, word in enumerate(own)}
    found = np.array([at.get(word, -1) for word in wanted], np.int64)
    missing = int((found < 0).sum())
    strange = [word for word in own if word not in set(wanted)]
    if len(wanted) and (missing == len(wanted) or (missing and strange)):
        lines = (f"{word!r}{_near(word, wanted) if what == 'label' else ''}" for word in strange)
        raise DataError(
            f"{where}: {missing} of the {len(wanted)} {what}s have no scores, and it holds {len(strange)} {what}s that "
            "are not in the data" + listing(lines, len(strange)) + f"\nName the {what}s as the data does."
        )
    return found


def _near(word: str, wanted: Names) -> str:
    return f".{did_you_mean(word, wanted)}"


def _read(path: Path) -> tuple[Names | None, Names | None, Any]:
    if path.suffix == ".npz":
        return _read_npz(path)
    table = open_table(check_file(path, SUFFIXES))
    header = list(table.header)
    if ID not in header:
        raise DataError(
            f"{path}: there is no column {ID!r} with the ids of the items; there is: {', '.join(header[:8])}."
        )
    value = next((name for name in VALUES if name in header), None)
    if LABEL in header and value is not None and len(header) <= 4:
        return _read_long(table, value)
    names = [name for name in header if name != ID]
    ids: list[str] = []
    blocks = [np.empty((0, len(names)), np.float32)]
    for some, values in number_blocks(table, names):
        ids += some
        blocks.append(values.astype(np.float32))
    _refuse_twice(ids, path, "item")
    return tuple(ids), tuple(names), np.concatenate(blocks)


def _read_long(table: Any, value: str) -> tuple[Names, Names, Any]:
    rows, columns = dict[str, int](), dict[str, int]()
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]] = []
    for batch, (some, values) in zip(table.batches([ID, LABEL]), number_blocks(table, [value]), strict=True):
        words = text_column(batch.column(1), LABEL, table.path).to_pylist()
        known = np.isfinite(values[:, 0])
        row = np.array([rows.setdefault(word, len(rows)) for word in some], np.int64)
        column = np.array([columns.setdefault(word, len(columns)) for word in words], np.int64)
        parts.append((row[known], column[known], values[known, 0]))
    row, column, numbers = (np.concatenate([part[k] for part in parts] or [np.empty(0)]) for k in range(3))
    keys = row.astype(np.int64) * max(1, len(columns)) + column.astype(np.int64)
    if len(np.unique(keys)) < len(keys):
        raise DataError(f"{table.path}: some entries (item, label) are listed more than once. Keep one score of each.")
    matrix = sp.csr_array((numbers.astype(np.float32), (row, column)), shape=(len(rows), len(columns)))
    return tuple(rows), tuple(columns), matrix


def _read_npz(path: Path) -> tuple[Names | None, Names | None, Any]:
    arrays = read_npz(path, ["scores"], ["ids", "names"])
    ids, names = (tuple(as_text(arrays, key, path)) if key in arrays else None for key in ("ids", "names"))
    scores = _matrix(arrays["scores"], str(path))
    for what, words, count in (("item", ids, scores.shape[0]), ("label", names, scores.shape[1])):
        if words is not None and len(words) != count:
            raise DataError(f"{path}: {len(words)} {what}s are named, and there are scores of {count}.")
        _refuse_twice(words or (), path, what)
    return ids, names, scores


def _from_array(given: Any) -> tuple[Names | None, Names | None, Any]:
    ids = names = None
    if hasattr(given, "iloc") and hasattr(given, "columns"):
        names = tuple(map(str, given.columns))
        ids = tuple(map(str, given.index))
        if ids == tuple(map(str, range(len(ids)))):
            ids = None
        given = given.to_numpy()
    return ids, names, _matrix(given, "scores")


def _matrix(given: Any, where: str) -> npt.NDArray[np.float32]:
    try:
        array = given if isinstance(given, np.ndarray) else np.asarray(given, np.float32)
        array = array if array.dtype == np.float32 else array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: no numbers ({error}). Give an array [N, L] with NaN for no opinion.") from None
    if array.ndim != 2:
        raise DataError(f"{where}: of shape {list(array.shape)}; give an array [N, L], a row per item.")
    return array


def _refuse_twice(words: Sequence[str], path: Path, what: str) -> None:
    if len(set(words)) < len(words):
        seen, twice = set[str](), list[str]()
        for word in words:
            (twice.append if word in seen else seen.add)(word)
        raise DataError(f"{path}: {len(twice)} {what}s occur more than once" + listing(map(repr, twice), len(twice)))
