"""Reading and writing labels and features.

Labels come in two forms, each as `.csv` or `.parquet`, and as `.npz`:

- wide: a column `item` with the ids, then a column a label; a cell is 1 (yes), 0 (no) or blank
  (nobody said); 1.0 and 0.0 are 1 and 0;
- long: columns item, label, value, a row an entry; or Open Images' own ImageID, Source, LabelName, Confidence.

A file is long where its header is exactly one of these two, else wide; `form=` overrules that.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from partly.data.features import digest, read_features
from partly.data.files import PathLike, plain_file, suffix_of
from partly.data.long import is_long, read_long, write_long
from partly.data.names import refuse_unwritable
from partly.data.npz import read_labels_npz, write_labels_npz
from partly.data.scores import read_scores, write_scores
from partly.data.split import Split, is_split, read_split
from partly.data.tables import SUFFIXES, open_table
from partly.data.wide import read_wide, write_wide
from partly.errors import SettingError
from partly.labels import Labels
from partly.names import checked_names

__all__ = [
    "Split",
    "digest",
    "is_split",
    "read_features",
    "read_labels",
    "read_scores",
    "read_split",
    "write_labels",
    "write_scores",
]

LABEL_SUFFIXES = (*SUFFIXES, ".npz")


def read_labels(path: PathLike, *, form: str | None = None, names: Iterable[str] | None = None) -> Labels:
    """Labels from a file. `names` fixes which labels there are, and their order; others in the file are refused."""
    path = plain_file(path, LABEL_SUFFIXES)
    _check_form(form, path)
    names = None if names is None else checked_names(names)
    if path.suffix.lower() == ".npz":
        return read_labels_npz(path, names)
    table = open_table(path)
    long = is_long(table.header) if form is None else form == "long"
    return (read_long if long else read_wide)(table, names)


def write_labels(labels: Labels, path: PathLike, *, form: str | None = None) -> None:
    """Labels to a file, whole or not at all. CSV and Parquet: wide, or long where the labels are sparse."""
    path = Path(path)
    suffix = suffix_of(path, LABEL_SUFFIXES)
    _check_form(form, path)
    refuse_unwritable(labels.ids, labels.names, path)
    if suffix == ".npz":
        return write_labels_npz(labels, path)
    long = labels.sparse if form is None else form == "long"
    return (write_long if long else write_wide)(labels, path)


def _check_form(form: str | None, path: Path) -> None:
    if form is not None and (form not in ("wide", "long") or path.suffix.lower() == ".npz"):
        raise SettingError(
            f"{path}: form={form!r}; it may be 'wide' or 'long', for {' and '.join(SUFFIXES)} files only."
        )
