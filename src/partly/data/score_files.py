"""Score files of any program: wide or long tables, `.npz` and `.npy`.

- Wide: a column with the ids of the items and one per label. Other columns are ignored.
- Long: `item`, `label` and a column `score` (probability, logit, confidence, value); an entry that is not listed, or a
  blank cell, has no score.
- `.npz`: `scores` [N, L], and optionally `ids` and `names`. `.npy`: scores [N, L]. Without ids or names, rows or
  columns are in the order of the labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.atomic_io import PathLike
from partly.data.formats.feature_table import number_blocks
from partly.data.formats.wide import refuse_bad_ids
from partly.data.matching import find_positions
from partly.data.npz import as_text, read_errors, read_npz
from partly.data.paths import check_file, format_suffix
from partly.data.table_layout import ID, TableView, with_id_column
from partly.data.tables import READABLE, open_table, text_column
from partly.errors import DataError, listing
from partly.labels import Labels
from partly.labels.names import Names

LABEL = "label"
VALUES = ("score", "probability", "logit", "confidence", "value")  # names of the column of scores in a long file
ARRAYS = (".npz", ".npy")
BLOCK_ENTRIES = 1 << 22

Block = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.int64]
REMEDY = "Add their scores, or leave them out of the labels."


class ScoreFile:
    """Scores in a file, read in blocks.

    Attributes
    ----------
    blank : int
        Number of entries without a score among those that were read; valid when all blocks are.
    by_position : bool
        Rows are matched by their position, because the file has no ids.
    """

    def __init__(self, path: PathLike, id_column: str | None = None) -> None:
        self.path, self.blank = Path(path), 0
        self.ids: Names | None = None
        self.names: Names | None = None
        self.matrix: Any = None  # [N, L], dense or sparse: what is not stored has no score
        self.table: TableView | None = None
        self.columns: tuple[str, ...] = ()
        if format_suffix(self.path) in ARRAYS:
            self._open_array()
        else:
            self.table = with_id_column(open_table(check_file(self.path, READABLE)), id_column)
            value = find_value_column(self.table.header)
            if value is not None:
                self.ids, self.names, self.matrix = read_long(self.table, value)
        self.by_position = self.ids is None and (self.table is None or self.table.by_position)

    def _open_array(self) -> None:
        if format_suffix(self.path) == ".npz":
            self.ids, self.names, self.matrix = read_score_archive(self.path)
        else:
            with read_errors(self.path):
                self.matrix = np.load(self.path, mmap_mode="r", allow_pickle=False)
        if self.matrix.ndim != 2 or self.matrix.dtype.kind not in "biuf":
            raise DataError(f"{self.path}: scores must be numbers [items, labels]; this is {self.matrix.dtype}.")

    def blocks(self, labels: Labels, every: bool = False) -> Iterator[tuple[Index, Block]]:
        """Yield the positions of items [B] and their scores [B, L], in the order of the file.

        Items and labels of the file that `labels` does not have are ignored. A known entry without a score is refused;
        with `every`, any entry is. An unknown entry without a score is 0, and is counted in `blank`.
        """
        blocks = self._table_blocks(labels) if self.matrix is None else self._matrix_blocks(labels)
        for index, block in blocks:
            missing = np.isnan(block)
            if missing.any():
                self._refuse_missing(missing if every else missing & (labels.rows(index) != 0), index, labels)
                self.blank += int(missing.sum())
                block = np.where(missing, np.zeros((), block.dtype), block)
            yield index, block

    def _refuse_missing(self, missing: npt.NDArray[np.bool_], index: Index, labels: Labels) -> None:
        places = np.argwhere(missing)
        if len(places):
            lines = (f"item {labels.id_at(int(index[i]))!r}, label {labels.names[j]!r}" for i, j in places)
            raise DataError(
                f"{self.path}: {len(places)} entries have no score"
                + listing(lines, len(places))
                + "\nGive a score to every entry whose label is known; the best labels of each item do not suffice."
            )

    def _table_blocks(self, labels: Labels) -> Iterator[tuple[Index, Block]]:
        assert self.table is not None
        table, names = self.table, labels.names
        find_positions(names, [name for name in table.header if name != ID], table.path, "label", REMEDY)
        ids = _ids_of(labels, table.by_position)
        position, file_ids = {name: i for i, name in enumerate(ids)}, list[str]()
        for block_ids, values in number_blocks(table, names):
            file_ids += block_ids
            index = np.array([position.get(name, -1) for name in block_ids], np.int64)
            wanted = index >= 0
            scores = values.astype(np.float32)
            yield (index, scores) if wanted.all() else (index[wanted], scores[wanted])
        refuse_bad_ids(table, file_ids)
        if table.by_position:
            self._refuse_count(len(file_ids), len(labels), "rows")
        find_positions(ids, file_ids, table.path, "item", REMEDY)

    def _matrix_blocks(self, labels: Labels) -> Iterator[tuple[Index, Block]]:
        rows = self._places(self.ids, labels.ids, len(labels), 0, "item")
        columns = self._places(self.names, labels.names, labels.shape[1], 1, "label")
        in_order = np.array_equal(columns, np.arange(self.matrix.shape[1]))
        step = max(1, BLOCK_ENTRIES // max(1, labels.shape[1]))
        for start in range(0, len(labels), step):
            index = np.arange(start, min(start + step, len(labels)))
            block = to_dense(self.matrix, rows[index])
            if not in_order:
                block = block[:, columns]
                block[:, columns < 0] = np.nan
            block = np.where(rows[index, None] < 0, np.nan, block) if (rows[index] < 0).any() else block
            yield index, block

    def _places(self, own: Names | None, wanted: Names, count: int, axis: int, what: str) -> Index:
        if own is not None:
            position = {name: i for i, name in enumerate(own)}
            positions = np.array([position.get(name, -1) for name in wanted], np.int64)
            if sp.issparse(self.matrix) and (positions >= 0).any():  # a long table need not list all
                return positions
            return find_positions(wanted, own, self.path, what, REMEDY)
        self._refuse_count(self.matrix.shape[axis], count, f"{what}s")
        return np.arange(count)

    def _refuse_count(self, own: int, count: int, what: str) -> None:
        if own != count:
            raise DataError(
                f"{self.path}: {own} {what} without ids or names, and {count} in the labels. Give the same ones in the "
                "same order, or name them (a column of ids; the arrays ids and names of an .npz)."
            )


def _ids_of(labels: Labels, by_position: bool) -> Sequence[str]:
    return tuple(map(str, range(len(labels)))) if by_position else labels.ids


def find_value_column(header: Sequence[str]) -> str | None:
    """Return the column of scores of a long table; None for a wide one."""
    if LABEL not in header or ID not in header or len(header) > 4:
        return None
    return next((name for name in VALUES if name in header), None)


def to_dense(matrix: Any, rows: Index) -> Block:
    """Return scores of these rows, NaN where none is stored."""
    if not sp.issparse(matrix):
        part = np.asarray(matrix[rows])
        return part if part.dtype.kind == "f" else part.astype(np.float32)
    sparse: Any = matrix
    stored = sparse[rows].tocoo()
    block = np.full(stored.shape, np.nan, np.float32)
    block[stored.row, stored.col] = stored.data
    return block


def read_long(table: Any, value: str) -> tuple[Names, Names, Any]:
    """Return ids, names and scores [N, L] of a long table, as a sparse matrix."""
    rows, columns = dict[str, int](), dict[str, int]()
    blocks: list[tuple[Index, Index, npt.NDArray[np.float64]]] = []
    for batch, (ids, values) in zip(table.batches([ID, LABEL]), number_blocks(table, [value]), strict=True):
        label_names = text_column(batch.column(1), LABEL, table.path).to_pylist()
        known = np.isfinite(values[:, 0])
        row = np.array([rows.setdefault(word, len(rows)) for word in ids], np.int64)
        column = np.array([columns.setdefault(word, len(columns)) for word in label_names], np.int64)
        blocks.append((row[known], column[known], values[known, 0]))
    row, column, numbers = (np.concatenate([block[k] for block in blocks] or [np.empty(0)]) for k in range(3))
    keys = row.astype(np.int64) * max(1, len(columns)) + column.astype(np.int64)
    if len(np.unique(keys)) < len(keys):
        raise DataError(f"{table.path}: some entries (item, label) are listed more than once. Keep one score of each.")
    matrix = sp.csr_array((numbers.astype(np.float32), (row, column)), shape=(len(rows), len(columns)))
    return tuple(rows), tuple(columns), matrix


def read_score_archive(path: Path) -> tuple[Names | None, Names | None, Any]:
    """Return ids, names (None where there are none) and scores [N, L] of an `.npz` file."""
    arrays = read_npz(path, ["scores"], ["ids", "names"])
    ids, names = (tuple(as_text(arrays, key, path)) if key in arrays else None for key in ("ids", "names"))
    scores = to_matrix(arrays["scores"], str(path))
    for what, words, count in (("item", ids, scores.shape[0]), ("label", names, scores.shape[1])):
        if words is not None and len(words) != count:
            raise DataError(f"{path}: {len(words)} {what}s are named, and there are scores of {count}.")
        refuse_repeated(words or (), path, what)
    return ids, names, scores


def to_matrix(scores: Any, where: str) -> npt.NDArray[np.float32]:
    """Return numbers [N, L] as float32."""
    try:
        array = scores if isinstance(scores, np.ndarray) else np.asarray(scores, np.float32)
        array = array if array.dtype == np.float32 else array.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: no numbers ({error}). Give an array [N, L] with NaN for no opinion.") from None
    if array.ndim != 2:
        raise DataError(f"{where}: of shape {list(array.shape)}; give an array [N, L], a row per item.")
    return array


def refuse_repeated(words: Sequence[str], path: Path, what: str) -> None:
    """Refuse ids or names that occur more than once."""
    if len(set(words)) < len(words):
        seen, twice = set[str](), list[str]()
        for word in words:
            (twice.append if word in seen else seen.add)(word)
        raise DataError(f"{path}: {len(twice)} {what}s occur more than once" + listing(map(repr, twice), len(twice)))
