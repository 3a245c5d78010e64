"""Scores of a model as tables: one row per item and one column per label, or one row per high score.

Tables are written and read in blocks, because all scores of many items and labels may not fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.atomic_io import PathLike
from partly.data.formats.feature_table import read_numbers, write_numbers
from partly.data.matching import refuse_unwritable
from partly.data.paths import check_suffix
from partly.data.score_files import ScoreFile, to_dense
from partly.data.table_layout import ID
from partly.data.tables import SUFFIXES, write_table
from partly.errors import SettingError

Block = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.int64]
STRONGEST = pa.schema([(ID, pa.string()), ("label", pa.string()), ("probability", pa.float32())])


@dataclass(frozen=True)
class Scores:
    """Scores [N, L] with the ids of the items and the names of the labels."""

    values: npt.NDArray[np.float32]
    ids: tuple[str, ...]
    names: tuple[str, ...]

    def to_pandas(self) -> Any:
        """Return a pandas table indexed by id, which `partly.metrics` matches with labels by id and name."""
        import pandas

        return pandas.DataFrame(self.values, list(self.ids), list(self.names))


def write_scores(
    path: PathLike,
    scores: npt.NDArray[np.floating[Any]] | Iterable[npt.NDArray[np.floating[Any]]],
    ids: Iterable[str],
    names: Sequence[str],
) -> None:
    """Write scores to a table with one row per item and one column per label, completely or not at all.

    Parameters
    ----------
    path : str or Path
        Target: `.csv`, `.tsv`, `.jsonl` or `.parquet`.
    scores : array of [N, L], or iterable of blocks of rows
        Probabilities.
    ids : iterable of str
        Ids of the items.
    names : sequence of str
        Names of the labels.

    Raises
    ------
    DataError
        If the suffix is unknown, or a name cannot be written.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.2], [0.4, 0.6]])
    >>> partly.data.write_scores("scores.csv", scores, ["a.jpg", "b.jpg"], ["cat", "dog"])
    >>> from pathlib import Path
    >>> print(Path("scores.csv").read_text().strip())
    "item","cat","dog"
    "a.jpg",0.9,0.2
    "b.jpg",0.4,0.6
    """
    path = Path(path)
    check_suffix(path, SUFFIXES)
    write_numbers(path, ids, names, [scores] if isinstance(scores, np.ndarray) else scores)


def read_scores(path: PathLike) -> Scores:
    """Read scores from a file of any program.

    Parameters
    ----------
    path : str or Path
        Table, wide (a column of ids and one per label) or long (`item`, `label`, `score`); `.npz` with `scores` and
        optionally `ids` and `names`; or `.npy`.

    Returns
    -------
    Scores
        Values, ids and names; NaN where a long table lists none. Ids and names that a file lacks are positions.

    Raises
    ------
    DataError
        If the file cannot be read, or a cell is not a number.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.2], [0.4, 0.6]])
    >>> partly.data.write_scores("scores.csv", scores, ["a.jpg", "b.jpg"], ["cat", "dog"])
    >>> partly.data.read_scores("scores.csv").names
    ('cat', 'dog')
    """
    file = ScoreFile(path)
    if file.table is not None and file.matrix is None:
        items, ids = read_numbers(file.table, [name for name in file.table.header if name != ID])
        return Scores(items.take(slice(None)).numpy(), ids, items.names or ())
    count, labels = file.matrix.shape
    values = to_dense(file.matrix, np.arange(count)).astype(np.float32, copy=False)
    return Scores(values, file.ids or tuple(map(str, range(count))), file.names or tuple(map(str, range(labels))))


def write_strongest(
    path: PathLike,
    blocks: Iterable[Block],
    ids: Iterable[str],
    names: Sequence[str],
    top: int | None = None,
    above: float | Block | None = None,
) -> int:
    """Write the highest scores to a table with one row (item, label, probability) each, completely or not at all.

    The rows of an item are sorted by probability.

    Parameters
    ----------
    path : str or Path
        Target: `.csv`, `.tsv`, `.jsonl` or `.parquet`.
    blocks : iterable of arrays [B, L]
        Probabilities.
    ids : iterable of str
        Ids of the items.
    names : sequence of str
        Names of the labels.
    top : int, optional
        Number of labels per item.
    above : float, or array of [L], optional
        Smallest probability, for all labels or for each.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    SettingError
        If `top` is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.2], [0.4, 0.6]])
    >>> partly.data.write_strongest("top.csv", [scores], ["a.jpg", "b.jpg"], ["cat", "dog"], top=1)
    2
    """
    path, rest, count = Path(path), iter(ids), 0
    check_suffix(path, SUFFIXES)
    if top is not None and top < 1:
        raise SettingError(f"top = {top}: must be 1 or more.")
    refuse_unwritable((), names, path)
    label_names = pa.array(names, pa.string())

    def batches() -> Iterator[Any]:
        nonlocal count
        for block in blocks:
            block_ids = [next(rest) for _ in range(len(block))]
            refuse_unwritable(block_ids, (), path)
            rows, columns = strongest(block, top, above)
            count += len(rows)
            item_ids = pa.array(block_ids, pa.string()).take(pa.array(rows))
            probabilities = pa.array(block[rows, columns].astype(np.float32))
            yield pa.record_batch([item_ids, label_names.take(columns), probabilities], STRONGEST)

    write_table(path, STRONGEST, batches())
    return count


def strongest(scores: Block, top: int | None = None, above: float | Block | None = None) -> tuple[Index, Index]:
    """Return rows and columns of the highest scores [B, L], sorted by item and score; ties go to the first labels."""
    chosen = np.ones(scores.shape, bool) if above is None else scores >= above
    if top is not None and top < scores.shape[1]:
        last = np.partition(scores, -top, axis=1)[:, -top, None]  # the score at that rank
        higher, tied = scores > last, scores == last
        remaining = top - higher.sum(axis=1, keepdims=True)  # places for tied scores
        crowded = np.flatnonzero(tied.sum(axis=1) > remaining[:, 0])
        tied[crowded] &= np.cumsum(tied[crowded], axis=1) <= remaining[crowded]
        chosen &= higher | tied
    rows, columns = np.nonzero(chosen)
    order = np.lexsort((columns, -scores[rows, columns], rows))
    return rows[order], columns[order]
