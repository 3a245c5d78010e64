"""Read a hierarchy from a table with the columns child and parent, or from an ontology in the OBO format."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from partly.atomic_io import PathLike
from partly.data.obo import read_obo
from partly.data.paths import check_file, error_prefix, format_suffix
from partly.data.tables import SUFFIXES, open_table, text_column
from partly.errors import DataError
from partly.labels.hierarchy import Hierarchy

COLUMNS = ("child", "parent")
OBO = ".obo"


def read_hierarchy(path: PathLike, names: Collection[str] | None = None) -> Hierarchy:
    r"""Read a hierarchy from a table with the columns child and parent, or from an OBO file.

    Repeated rows are allowed. A child in several rows has several parents.

    Parameters
    ----------
    path : str or Path
        A `.csv`, `.tsv`, `.jsonl`, `.parquet` or `.obo` file.
    names : names of labels, optional
        Labels of an OBO file, by id or by name; other terms are left out, and each label is below its nearest
        ancestors. By default all terms by id.

    Returns
    -------
    Hierarchy
        The parents of each label.

    Raises
    ------
    DataError
        If the file cannot be read, a column is missing, or there is a cycle.

    Examples
    --------
    >>> import partly
    >>> from pathlib import Path
    >>> size = Path("parents.csv").write_text("child,parent\ncat,animal\n")
    >>> partly.data.read_hierarchy("parents.csv")
    Hierarchy(2 labels: 1 roots, 1 leaves)
    """
    file = check_file(path, (*SUFFIXES, OBO))
    return read_obo(file, names) if format_suffix(file) == OBO else _read_table(file)


def _read_table(path: Path) -> Hierarchy:
    table = open_table(path)
    if not set(COLUMNS) <= set(table.header):
        raise DataError(
            f"{table.place(-1)}: a hierarchy needs the columns child and parent; found {', '.join(table.header)}."
        )
    parents: dict[str, list[str]] = {}
    for batch in table.batches(COLUMNS):
        columns = (
            text_column(column, name, table.path).to_pylist()
            for column, name in zip(batch.columns, COLUMNS, strict=True)
        )
        for child, parent in zip(*columns, strict=True):
            parents.setdefault(child, []).append(parent)
    with error_prefix(table.path):
        return Hierarchy({child: tuple(above) for child, above in parents.items()})
