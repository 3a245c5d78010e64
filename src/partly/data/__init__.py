"""Reading and writing: data sets, labels, features and scores. A format is a file in this folder.

Labels come in two forms, each as `.csv` or `.parquet`, and as `.npz`:

- wide: a column `item` with the ids, then a column per label; a cell is 1 (yes), 0 (no) or blank
  (nobody said); 1.0 and 0.0 are 1 and 0;
- long: columns item, label, value, a row per entry; or item, label alone, where every row is a yes; or Open Images' own
  ImageID, Source, LabelName, Confidence.

A file is long where its header is exactly one of these, else wide; `form=` overrules that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from partly.data import formats
from partly.data.dataset import Dataset, grown, held_out, sized, sound
from partly.data.matching import arranged, positions, refuse_unwritable
from partly.data.parents import read_hierarchy
from partly.data.paths import plain_file, suffix_of
from partly.data.scores import Scores, read_scores, write_scores
from partly.data.splits import read_split
from partly.errors import DataError, SettingError
from partly.files import PathLike
from partly.labels import Labels
from partly.labels.names import checked_names

__all__ = [
    "Dataset",
    "Scores",
    "held_out",
    "is_whole",
    "read",
    "read_hierarchy",
    "read_labels",
    "read_scores",
    "write",
    "write_labels",
    "write_scores",
]

FORMS = ("wide", "long")


def read(
    path: PathLike,
    labels: PathLike | None = None,
    hierarchy: PathLike | None = None,
    skip_bad: bool = False,
    size: int | None = None,
) -> Dataset:
    """A data set: one that lies in a file as a whole (or 'scenes', which is made), or items in a file with what is
    known of them in another, `labels`, matched by id; items of which it says nothing at all are in `Dataset.wider`. Of
    a whole one, `labels` replaces what is known, and what the file says is the truth. `hierarchy`: a table with the
    columns child and parent.

    Pictures in files are all looked at. Bad ones are refused, in one message, or left out (`skip_bad`). They are shown
    at the `size` that is given, else at that which a network wants. Where the labels say which items are to test on, in
    a column `split`, these are the test part.
    """
    whole = formats.of(Path(path), "dataset")
    if whole is not None:
        data: Dataset = whole.read(Path(path))
        if labels is not None:
            data = replace(data, truth=data.labels)
    else:
        found = formats.of(Path(path), "items")
        if found is None:
            plain_file(path, formats.suffixes("items"))  # says what is wrong with it
            raise DataError(f"{path}: no format knows what items are in it.")
        data = found.read(Path(path))
    if labels is not None:
        data = _labelled(data, path, labels)
    data = sound(data, path, skip_bad)
    if size is not None:
        data = sized(data, size)
    return data if hierarchy is None else replace(data, hierarchy=read_hierarchy(hierarchy))


def _labelled(data: Dataset, path: PathLike, labels: PathLike) -> Dataset:
    """The items of which the labels speak, with these labels; all others beside them, as `wider`."""
    known = read_labels(labels)
    if data.truth is not None:
        known = arranged(known, data.truth.names, str(labels))
    listed = positions(known.ids, data.labels.ids, path, "item")
    rest = np.setdiff1d(np.arange(len(data.labels)), listed)
    more = grown(known, map(data.labels.id_at, rest.tolist())) if len(rest) else known
    whole = replace(data[np.concatenate([listed, rest])], labels=more)
    to_test = read_split(Path(labels)) if data.test is None else None
    if to_test is not None and not to_test.any():
        to_test = None  # nothing is set aside to test on
    train = np.arange(len(listed)) if to_test is None else np.flatnonzero(~to_test)
    test = data.test if to_test is None else whole[np.flatnonzero(to_test)]
    wider = whole[np.concatenate([train, np.arange(len(listed), len(whole.labels))])] if len(rest) else None
    return replace(whole[train], test=test, wider=wider)


def is_whole(path: PathLike) -> bool:
    """Whether this is a data set by itself, to which no file of labels need be given."""
    return formats.of(Path(path), "dataset") is not None


def write(data: Dataset, path: PathLike) -> None:
    """A data set with a test part to an `.npz`; else its items, as features, to `.npy`, `.npz`, `.csv` or `.parquet`.
    What is known of them goes to a file of its own: `write_labels`."""
    path = Path(path)
    formats.by_suffix(path, "items" if data.test is None else "dataset").write(data, path)


def read_labels(path: PathLike, *, form: str | None = None, names: Iterable[str] | None = None) -> Labels:
    """Labels from a file. `names` fixes which labels there are, and their order; others in the file are refused."""
    path = plain_file(path, formats.suffixes("labels"))
    _check_form(form, path)
    names = None if names is None else checked_names(names)
    one = formats.of(path, "labels") if form is None else formats.formats("labels")[form]
    assert one is not None  # every file of such a name is of one of the formats
    labels: Labels = one.read(path, names)
    return labels


def write_labels(labels: Labels, path: PathLike, *, form: str | None = None) -> None:
    """Labels to a file, whole or not at all. CSV and Parquet: wide, or long where the labels are sparse."""
    path = Path(path)
    suffix = suffix_of(path, formats.suffixes("labels"))
    _check_form(form, path)
    refuse_unwritable(labels.ids, labels.names, path)
    table = (form or FORMS[labels.sparse]) if suffix != ".npz" else "labels-npz"
    formats.formats("labels")[table].write(labels, path)


def _check_form(form: str | None, path: Path) -> None:
    if form is not None and (form not in FORMS or path.suffix.lower() == ".npz"):
        raise SettingError(f"{path}: form={form!r}; it may be 'wide' or 'long', for .csv and .parquet files only.")
