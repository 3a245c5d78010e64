"""Scores of a model: a row per item, a column per label, as `.csv` or `.parquet`; or a row for each of the strongest.

A million items of thousands of labels have more scores than anybody reads, or holds: both are written and read some
rows at a time.
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
from partly.data.formats.feature_table import number_blocks, read_numbers, write_numbers
from partly.data.formats.wide import label_columns, refuse_bad_ids
from partly.data.headers import ID
from partly.data.matching import find_positions, refuse_unwritable
from partly.data.paths import check_file, check_suffix
from partly.data.tables import SUFFIXES, open_table, write_table
from partly.errors import SettingError

Block = npt.NDArray[np.floating[Any]]
Index = npt.NDArray[np.int64]
STRONGEST = pa.schema([(ID, pa.string()), ("label", pa.string()), ("probability", pa.float32())])


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
    """Scores to a table, an item a row and a label a column. Afterwards the file is there, whole, or as it was before.

    Parameters
    ----------
    path : str or Path
        A table.
    scores : array of [N, L], or iterable of blocks of it
        Probabilities.
    ids : iterable of str
        Of the items.
    names : sequence of str
        Of the labels.

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
    """Scores from a table, as `write_scores` leaves them.

    Parameters
    ----------
    path : str or Path
        A table.

    Returns
    -------
    Scores
        Values, ids and names.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> scores = np.array([[0.9, 0.2], [0.4, 0.6]])
    >>> partly.data.write_scores("scores.csv", scores, ["a.jpg", "b.jpg"], ["cat", "dog"])
    >>> partly.data.read_scores("scores.csv").names
    ('cat', 'dog')
    """
    table = open_table(check_file(path, SUFFIXES))
    items, ids = read_numbers(table, label_columns(table))
    return Scores(items.take(slice(None)).numpy(), ids, items.names or ())


def read_score_blocks(path: PathLike, ids: Sequence[str], names: Sequence[str]) -> Iterator[tuple[Index, Block]]:
    """Scores of these items and labels, a file's rows after others: where among `ids` they stand [B], and the scores
    [B, len(names)]. What else is in the file is passed over; items that are not in it are refused at its end."""
    table = open_table(check_file(path, SUFFIXES))
    find_positions(names, label_columns(table), table.path, "label")  # refuses those that are not there
    at, found = {word: i for i, word in enumerate(ids)}, list[str]()
    for some, values in number_blocks(table, names):
        found += some
        index = np.array([at.get(word, -1) for word in some], np.int64)
        here = index >= 0
        yield (index, values.astype(np.float32)) if here.all() else (index[here], values[here].astype(np.float32))
    refuse_bad_ids(table, found)
    find_positions(ids, found, table.path, "item")


def write_strongest(
    path: PathLike,
    blocks: Iterable[Block],
    ids: Iterable[str],
    names: Sequence[str],
    top: int | None = None,
    above: float | Block | None = None,
) -> int:
    """A row (item, label, probability) for each of the `top` labels of an item, those that reach `above` (for all
    labels, or for each [L]), or both; an item's strongest first. How many there are. Afterwards the file is there,
    whole, or as it was before.

    Parameters
    ----------
    path : str or Path
        A table.
    blocks : iterable of arrays [B, L]
        Probabilities.
    ids : iterable of str
        Of the items.
    names : sequence of str
        Of the labels.
    top : int, optional
        So many labels an item.
    above : float, or array of [L], optional
        Only those that reach it.

    Returns
    -------
    int
        How many rows.

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
        raise SettingError(f"top = {top}: should be 1 or more.")
    refuse_unwritable((), names, path)
    words = pa.array(names, pa.string())

    def batches() -> Iterator[Any]:
        nonlocal count
        for block in blocks:
            its = [next(rest) for _ in range(len(block))]
            refuse_unwritable(its, (), path)
            rows, columns = strongest(block, top, above)
            count += len(rows)
            found = pa.array(block[rows, columns].astype(np.float32))
            yield pa.record_batch(
                [pa.array(its, pa.string()).take(pa.array(rows)), words.take(columns), found], STRONGEST
            )

    write_table(path, STRONGEST, batches())
    return count


def strongest(scores: Block, top: int | None = None, above: float | Block | None = None) -> tuple[Index, Index]:
    """Rows and columns of the highest scores [B, L] of each row: an item after the other, the highest first; of equal
    ones the first labels."""
    chosen = np.ones(scores.shape, bool) if above is None else scores >= above
    if top is not None and top < scores.shape[1]:
        last = np.partition(scores, -top, axis=1)[:, -top, None]  # the score at that rank
        over, level = scores > last, scores == last
        room = top - over.sum(axis=1, keepdims=True)  # that equal scores may still fill
        crowded = np.flatnonzero(level.sum(axis=1) > room[:, 0])
        level[crowded] &= np.cumsum(level[crowded], axis=1) <= room[crowded]
        chosen &= over | level
    rows, columns = np.nonzero(chosen)
    order = np.lexsort((columns, -scores[rows, columns], rows))
    return rows[order], columns[order]
