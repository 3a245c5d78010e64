"""Read a hierarchy from a table with the columns child and parent."""

from __future__ import annotations

from partly.atomic_io import PathLike
from partly.data.paths import check_file, error_prefix
from partly.data.tables import SUFFIXES, Faults, open_table, text_column
from partly.errors import DataError
from partly.labels.hierarchy import Hierarchy

COLUMNS = ("child", "parent")


def read_hierarchy(path: PathLike) -> Hierarchy:
    r"""Read a hierarchy from a table with the columns child and parent. Repeated rows are allowed.

    Parameters
    ----------
    path : str or Path
        A `.csv`, `.tsv`, `.jsonl` or `.parquet` file.

    Returns
    -------
    Hierarchy
        Mapping from child to parent.

    Raises
    ------
    DataError
        If the file cannot be read, a column is missing, a label has two parents, or there is a cycle.

    Examples
    --------
    >>> import partly
    >>> from pathlib import Path
    >>> size = Path("parents.csv").write_text("child,parent\ncat,animal\n")
    >>> partly.data.read_hierarchy("parents.csv")
    Hierarchy(2 labels: 1 roots, 1 leaves)
    """
    table = open_table(check_file(path, SUFFIXES))
    if not set(COLUMNS) <= set(table.header):
        raise DataError(
            f"{table.place(-1)}: a hierarchy needs the columns child and parent; found {', '.join(table.header)}."
        )
    parents: dict[str, str] = {}
    twice, row = Faults(table, "labels with two parents"), 0
    for batch in table.batches(COLUMNS):
        words = (
            text_column(column, name, table.path).to_pylist()
            for column, name in zip(batch.columns, COLUMNS, strict=True)
        )
        for child, parent in zip(*words, strict=True):
            if parents.setdefault(child, parent) != parent:
                twice.add([row], [f"{child!r} below {parent!r}, but below {parents[child]!r} before"])
            row += 1
    twice.refuse("Keep one of them.")
    with error_prefix(table.path):
        return Hierarchy(parents)
