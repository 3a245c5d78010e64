"""Which items are to learn from and which to test on, where a table of labels says so: a column `split` that holds
`train` or `test`. A label may be called so too, and then holds what labels hold.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from partly.data.tables import Faults, Table, first_cell, is_table, open_table, text_column

COLUMN = "split"
PARTS = ("train", "test")


def has_split(table: Table) -> bool:
    return COLUMN in table.header and first_cell(table, COLUMN) in PARTS


def read_split(path: Path) -> npt.NDArray[np.bool_] | None:
    """Which rows of a table are to test on; None where nothing is said."""
    if not is_table(path) or not has_split(table := open_table(path)):
        return None
    words: list[str] = []
    for batch in table.batches([COLUMN]):
        words += text_column(batch.column(0), COLUMN, path).to_pylist()
    bad = [i for i, word in enumerate(words) if word not in PARTS]
    faults = Faults(table, f"cells of {COLUMN!r} that are not {' or '.join(PARTS)}")
    faults.add(bad, (repr(words[i]) for i in bad))
    faults.refuse("Say of every item to which part it belongs.")
    return np.array([word == PARTS[1] for word in words])
