"""Read and write data sets, labels, features and scores.

Every file in `data/formats/` is one format. A format is recognized by the content of a file; `form=` overrides that.
The caller says what a file leaves open: see `label_semantics`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from partly.atomic_io import PathLike
from partly.data import formats
from partly.data.dataset import Dataset, append_unlabelled, drop_unreadable, resize_images, split_holdout
from partly.data.formats import hugging_face, labels_npy, ledger_db, tag_lists, train_test, wide
from partly.data.hierarchy_table import read_hierarchy
from partly.data.label_semantics import LabelSemantics, refuse_lossy_positives
from partly.data.matching import find_positions, match_ids_loosely, refuse_unwritable, reorder_columns
from partly.data.paths import check_file, check_suffix, format_suffix
from partly.data.protocols import DatasetFormat, Format, LabelFormat
from partly.data.score_files import ScoreFile
from partly.data.scores import Scores, read_scores, write_scores, write_strongest
from partly.data.table_layout import (
    find_columns,
    holds_values,
    is_long,
    is_tag_lists,
    is_tags,
    read_test_rows,
    with_id_column,
)
from partly.data.tables import SUFFIXES, for_spreadsheets, is_table, open_table
from partly.errors import DataError, SettingError
from partly.items import Absent
from partly.labels import Labels
from partly.labels.names import check_names

__all__ = [
    "Dataset",
    "LabelSemantics",
    "ScoreFile",
    "Scores",
    "for_spreadsheets",
    "is_whole",
    "read",
    "read_hierarchy",
    "read_items",
    "read_labels",
    "read_scores",
    "split_holdout",
    "write",
    "write_labels",
    "write_scores",
    "write_strongest",
]


def read(
    path: PathLike | Any,
    labels: PathLike | None = None,
    hierarchy: PathLike | None = None,
    skip_bad: bool = False,
    size: int | None = None,
    absent: str | None = None,
    uncertain: str | None = None,
    missing: Iterable[str] = (),
    label_columns: Iterable[str] = (),
    id_column: str | None = None,
    tag_separator: str | None = None,
) -> Dataset:
    """Read a data set: items with their labels from one source, or items and a label file, matched by id.

    Items that the label file does not mention are in `Dataset.with_unlabelled`. If the source has labels of its own,
    `labels` replaces them, and those of the source become the truth. If the label file has a column `split`, the rows
    marked `test` become the test part. A label file alone gives a data set without items.

    Parameters
    ----------
    path : str, Path, or a Hugging Face data set
        A file or folder, or a built-in data set: "scenes" or "digits".
    labels : str or Path, optional
        Label file or ledger.
    hierarchy : str or Path, optional
        Table with the columns child and parent, or an OBO file. A ledger has its own hierarchy.
    skip_bad : bool
        Skip unreadable image files with a warning instead of refusing them.
    size : int, optional
        Side of the decoded images in pixels. By default the network decides.
    absent : "unknown" or "no", optional
        Value of entries that the label file does not mention.
    uncertain : "unknown", "yes" or "no", optional
        Value of entries that the label file marks as uncertain.
    missing : sequence of str
        Further cells that mean unknown, besides blank, NA and ?.
    label_columns : sequence of str
        Label columns of a table: names, patterns such as "label_*", or a range "first..last".
    id_column : str, optional
        Column with the ids of the items. By default `item` or `id`. If neither items nor labels have ids, rows are
        matched by position, and `Dataset.notes` mentions it.
    tag_separator : str, optional
        Separator of the tags in a cell that holds several.

    Returns
    -------
    Dataset
        Items and labels, with the truth, test part and hierarchy where the source has them.

    Raises
    ------
    DataError
        If a file cannot be read, has an unknown format, or does not match the other file.
    SettingError
        If `absent`, `uncertain` or `size` cannot be used.

    Examples
    --------
    >>> import partly
    >>> data = partly.read("digits")
    >>> data.items.shape, data.labels.shape, len(data.test.labels)
    ((64,), (1200, 15), 597)
    """
    semantics = LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator)
    if labels is None and semantics.label_columns and not hugging_face.is_object(path) and is_table(Path(path)):
        labels = path
        _detect_label_format(Path(path), semantics)  # refuses columns that do not exist
    data = _read_items(path, labels, semantics)
    if labels is not None:
        data = _attach_labels(data, path, labels, semantics)
    data = drop_unreadable(data, path, skip_bad)
    if size is not None:
        data = resize_images(data, size)
    if hierarchy is None and labels is not None and ledger_db.recognizes(Path(labels)):
        return replace(data, hierarchy=ledger_db.hierarchy(Path(labels)) or data.hierarchy)
    return data if hierarchy is None else replace(data, hierarchy=read_hierarchy(hierarchy, data.labels.names))


def _read_items(path: PathLike | Any, labels: PathLike | None, semantics: LabelSemantics) -> Dataset:
    """Read items, with their labels where the source holds both."""
    if hugging_face.is_object(path):
        return hugging_face.of_object(path, semantics)
    dataset_format = formats.of(Path(path), "dataset")
    if dataset_format is not None:
        data = dataset_format.read(Path(path), semantics)
        return data if labels is None else replace(data, truth=data.labels)
    item_format = formats.of(Path(path), "items")
    if item_format is not None:
        return item_format.read(Path(path), semantics)
    if labels is None and formats.of(Path(path), "labels") is not None:
        observed = read_labels(path, **vars(semantics))
        return Dataset(Absent("features", (0,), len(observed)), observed)
    check_file(path, formats.readable("items"))  # raises the more specific error
    raise DataError(f"{path}: no format recognizes items in this file.")


def _attach_labels(data: Dataset, path: PathLike, labels: PathLike, semantics: LabelSemantics) -> Dataset:
    """Attach the labels of a file; items that it does not mention go to `with_unlabelled`."""
    observed = read_labels(labels, **vars(semantics))
    notes = _check_matching(data, observed, path, labels, semantics)
    if data.truth is not None:
        observed = reorder_columns(observed, data.truth.names, str(labels))
    observed = match_ids_loosely(observed, data.labels.ids)
    listed = find_positions(observed.ids, data.labels.ids, path, "item")
    rest = np.setdiff1d(np.arange(len(data.labels)), listed)
    extended = append_unlabelled(observed, map(data.labels.id_at, rest.tolist())) if len(rest) else observed
    every = replace(data[np.concatenate([listed, rest])], labels=extended)
    test_rows = read_test_rows(Path(labels)) if data.test is None and not ledger_db.recognizes(Path(labels)) else None
    if test_rows is not None and not test_rows.any():
        test_rows = None
    train = np.arange(len(listed)) if test_rows is None else np.flatnonzero(~test_rows)
    test = data.test if test_rows is None else every[np.flatnonzero(test_rows)]
    unlabeled = np.arange(len(listed), len(every.labels))
    with_unlabelled = every[np.concatenate([train, unlabeled])] if len(rest) else None
    notes = (*data.notes, *notes, *_warn_of_label_features(data, observed))
    return replace(every[train], test=test, with_unlabelled=with_unlabelled, notes=notes)


def _warn_of_label_features(data: Dataset, labels: Labels) -> tuple[str, ...]:
    """Warn of features with the name of a label: they may leak it."""
    names = getattr(data.items, "column_names", data.items.names)
    suspects = [name for name in names or () if name in labels.names]
    if not suspects:
        return ()
    shortened = ", ".join(suspects[:5]) + (", ..." if len(suspects) > 5 else "")
    return (
        f"Warning: {len(suspects)} features have the name of a label ({shortened}). If they are the labels, leave them "
        f"out: --label-columns {','.join(suspects[:2])} (label_columns=).",
    )


def _check_matching(
    data: Dataset, observed: Labels, path: PathLike, labels: PathLike, semantics: LabelSemantics
) -> tuple[str, ...]:
    """Return a note if rows are matched by position, because neither side has ids; refuse doubtful cases."""
    file = Path(labels)
    form = None if ledger_db.recognizes(file) else _detect_label_format(file, semantics)
    positional = form is labels_npy.FORMAT or (
        form in (wide.FORMAT, tag_lists.FORMAT) and with_id_column(open_table(file), semantics.id_column).by_position
    )
    if not positional or str(path) == str(labels):
        return ()
    if data.labels.given_ids is not None:
        raise DataError(
            f"{labels}: has no item ids, but the items of {path} have some ({data.labels.id_at(0)!r}, ...). Name "
            "the column that holds them: --id-column NAME (id_column=); or add a column 'item'."
        )
    if len(observed) != len(data.labels):
        raise DataError(
            f"{labels}: has {len(observed)} rows, but {path} has {len(data.labels)}. Neither has ids, so rows are "
            "matched by position and their numbers must agree. Add a column 'item' with ids to both."
        )
    return (f"Neither {path} nor {labels} has ids: their {len(observed):,} rows are matched by position.",)


def read_items(path: PathLike, labels: Sequence[str], skip_bad: bool, semantics: LabelSemantics) -> Dataset:
    """Read items for prediction; columns named like `labels`, or named by the caller as labels, are left out."""
    if not ledger_db.recognizes(Path(path)) and is_table(Path(path)) and Path(path).is_file():
        header = open_table(Path(path)).header
        named = find_columns(header, semantics.label_columns)
        semantics = replace(semantics, label_columns=(*named, *(name for name in labels if name in header)))
    else:
        semantics = replace(semantics, label_columns=())
    return drop_unreadable(_read_items(path, None, semantics), path, skip_bad)


def is_whole(path: PathLike, label_columns: Iterable[str] = ()) -> bool:
    """Return whether a source holds items and labels: a data set, or a table whose label columns are named."""
    return formats.of(Path(path), "dataset") is not None or (bool(tuple(label_columns)) and is_table(Path(path)))


def write(data: Dataset | Labels, path: PathLike, *, form: str | None = None, absent: str | None = None) -> None:
    """Write labels or a data set to a file, completely or not at all.

    A data set with a test part goes to an `.npz` file. One without goes to a format that holds items and labels
    (`.arff`, `.svm`, form="hugging-face"); to `.npy`, `.npz` or a table, only its features are written.

    Parameters
    ----------
    data : Dataset or Labels
        Data to write.
    path : str or Path
        Target. Its ending selects the format.
    form : str, optional
        Name of the format, where the ending is ambiguous.
    absent : "unknown" or "no", optional
        Meaning of entries that the file does not list, for formats that list positives only.

    Raises
    ------
    DataError
        If the format cannot hold the data.
    SettingError
        If there is no such format, or it cannot be written.

    Examples
    --------
    >>> import partly
    >>> labels = partly.Labels.from_ternary([[1, -1], [0, 1]], names=["cat", "dog"], ids=["a.jpg", "b.jpg"])
    >>> partly.write(labels, "known.csv")
    >>> from pathlib import Path
    >>> print(Path("known.csv").read_text().strip())
    "item","cat","dog"
    "a.jpg",1,0
    "b.jpg",,1
    """
    path = Path(path)
    if isinstance(data, Labels):
        write_labels(data, path, form=form, absent=absent)
        return
    target: Format = (
        _choose_dataset_format(data, path) if form is None else formats.by_name(form, "dataset", "items", "labels")
    )
    if isinstance(target, LabelFormat):
        write_labels(data.labels, path, form=form, absent=absent)
        return
    if data.test is not None and target is not train_test.FORMAT:
        raise DataError(f"{path}: this format cannot hold a test part. Write each part to a file, or both to an .npz.")
    if target.positives_only:
        refuse_lossy_positives(data.labels, absent, path)
    if target.write is None:
        raise _read_only_error(form, path)
    target.write(data, path)


def _choose_dataset_format(data: Dataset, path: Path) -> DatasetFormat:
    suffix = format_suffix(path)
    holds_both = suffix in formats.suffixes("dataset") and suffix not in formats.suffixes("items")
    return formats.by_suffix(path, "dataset" if data.test is not None or holds_both else "items")


def read_labels(
    path: PathLike,
    *,
    form: str | None = None,
    names: Iterable[str] | None = None,
    absent: str | None = None,
    uncertain: str | None = None,
    missing: Iterable[str] = (),
    label_columns: Iterable[str] = (),
    id_column: str | None = None,
    tag_separator: str | None = None,
) -> Labels:
    """Read labels from a file or folder, also from one that holds items as well.

    Parameters
    ----------
    path : str or Path
        A file, a folder or a ledger.
    form : str, optional
        Name of the format, where it cannot be recognized.
    names : sequence of str, optional
        The labels and their order. Other labels in the file are refused.
    absent, uncertain, missing, label_columns, id_column, tag_separator
        As in `read`.

    Returns
    -------
    Labels
        Observed labels.

    Raises
    ------
    DataError
        If the file cannot be read or its format is not recognized.

    Examples
    --------
    >>> import partly
    >>> partly.write(partly.Labels.from_ternary([[1, -1, 0]], names=["cat", "dog", "boat"]), "known.csv")
    >>> partly.data.read_labels("known.csv")
    Labels(1 items x 3 labels: 1 yes, 1 no, 33.3% unknown)
    """
    path = Path(path)
    semantics = LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator)
    names = None if names is None else check_names(names)
    suffixes = formats.readable("labels", "dataset")
    if form is not None:
        source: Format | None = formats.by_name(form, "labels", "dataset")
        assert source is not None
        if source.suffixes and source is not ledger_db.FORMAT:
            check_file(path, formats.readable_by(source))
    else:
        if not path.is_dir() and not ledger_db.recognizes(path):  # a ledger on a server is no file
            check_file(path, suffixes)
        source = _detect_label_format(path, semantics)
        if source is None:
            check_file(path, suffixes)  # raises for a folder
            raise DataError(f"{path}: no format recognizes labels in this file. {_list_writable()}")
    if isinstance(source, LabelFormat):
        return source.read(path, names, semantics)
    labels = source.read(path, semantics).labels
    return labels if names is None else semantics.fill_absent(reorder_columns(labels, names, str(path)), path)


def _detect_label_format(path: Path, semantics: LabelSemantics) -> Format | None:
    """Return the format of a label file; for tables it depends on what the caller says about columns."""
    if ledger_db.recognizes(path) or not (is_table(path) and path.is_file()):
        return formats.of(path, "labels") or formats.of(path, "dataset")
    if semantics.label_columns:
        table = with_id_column(open_table(path), semantics.id_column)
        chosen = find_columns(table.header, semantics.label_columns, table.place(-1))
        return tag_lists.FORMAT if len(chosen) == 1 and not holds_values(table, chosen[0]) else wide.FORMAT
    if semantics.id_column is None:
        return formats.of(path, "labels") or formats.of(path, "dataset")
    table = with_id_column(open_table(path), semantics.id_column)
    layouts = {"long": is_long(table.header), "tags": is_tags(table), "tag-lists": is_tag_lists(table), "wide": True}
    return formats.by_name(next(name for name, fits in layouts.items() if fits), "labels")


def write_labels(labels: Labels, path: PathLike, *, form: str | None = None, absent: str | None = None) -> None:
    """Write labels to a file, completely or not at all.

    Parameters
    ----------
    labels : Labels
        Labels to write.
    path : str or Path
        Target.
    form : str, optional
        Name of the format. By default the ending decides; a table is wide, or long where the labels are sparse.
    absent : "unknown" or "no", optional
        Meaning of entries that the file does not list. Formats that list positives only refuse labels that would
        become ambiguous, unless this is given.

    Raises
    ------
    DataError
        If the format cannot hold the labels, or the ending is ambiguous.

    Examples
    --------
    >>> import partly
    >>> partly.data.write_labels(partly.Labels.from_positives([[1, 0], [0, 1]]), "tags.csv", form="tags")
    >>> from pathlib import Path
    >>> print(Path("tags.csv").read_text().strip())
    "item","label"
    "0","0"
    "1","1"
    """
    path = Path(path)
    LabelSemantics(absent)  # refuses other words
    target = formats.by_name(form or _choose_label_format(labels, path), "labels")
    if target.suffixes:
        check_suffix(path, target.suffixes)
    if target.write is None:
        raise _read_only_error(form, path)
    refuse_unwritable(labels.ids, labels.names, path)
    if target.positives_only:
        refuse_lossy_positives(labels, absent, path)
    target.write(labels, path)


def _choose_label_format(labels: Labels, path: Path) -> str:
    """Choose by the ending; several formats share `.json` and `.txt`, and a folder has none, so they must be named."""
    suffix = check_suffix(path, formats.suffixes("labels")) if path.suffix else ""
    if format_suffix(path) in SUFFIXES:
        return "long" if labels.sparse else "wide"
    writable = {name: form for name, form in formats.formats("labels").items() if form.write is not None}
    names = [name for name, form in writable.items() if suffix in (form.suffixes or ("",))]
    if len(names) != 1 or not suffix:
        raise DataError(f"{path}: several formats have this ending. Choose one: {' or '.join(names)} (form=, --form).")
    return names[0]


def _read_only_error(form: str | None, path: Path) -> SettingError:
    return SettingError(f"{path}: form = {form!r} can be read but not written. {_list_writable()}")


def _list_writable() -> str:
    every: dict[str, Format] = {**formats.formats("labels"), **formats.formats("dataset")}
    return f"Available: {', '.join(name for name, form in every.items() if form.write is not None)}."
