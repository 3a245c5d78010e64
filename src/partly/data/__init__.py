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
from partly.data.headers import holds_values, is_long, is_tag_lists, is_tags
from partly.data.hierarchy_table import read_hierarchy
from partly.data.label_semantics import LabelSemantics, only_yes
from partly.data.matching import find_positions, match_ids_loosely, refuse_unwritable, reorder_columns
from partly.data.paths import check_file, check_suffix, format_suffix
from partly.data.protocols import DatasetFormat, Format, LabelFormat
from partly.data.scores import Scores, read_score_blocks, read_scores, write_scores, write_strongest
from partly.data.splits import read_split
from partly.data.table_view import matching_columns, view
from partly.data.tables import SUFFIXES, for_spreadsheets, is_table, open_table
from partly.errors import DataError, SettingError
from partly.items import Absent
from partly.labels import Labels
from partly.labels.names import check_names

__all__ = [
    "Dataset",
    "LabelSemantics",
    "Scores",
    "for_spreadsheets",
    "is_whole",
    "read",
    "read_hierarchy",
    "read_items",
    "read_labels",
    "read_score_blocks",
    "read_scores",
    "split_holdout",
    "write",
    "write_labels",
    "write_scores",
    "write_strongest",
]

TABLES = ("wide", "long")  # forms of a table of labels: wide, and long where the labels are sparse


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
    """A data set: one that lies in a file as a whole (or 'scenes', which is made), a Hugging Face `Dataset`, or items
    in a file with what is known of them in another, `labels`, matched by id; items of which it says nothing at all are
    in `Dataset.with_unlabelled`. Of a whole one, `labels` replaces what is known, and what the file says is the truth.
    `hierarchy`: a table with the columns child and parent; a ledger has its own. A file of labels alone gives a data
    set that has no items.

    What a file of labels leaves open: `absent` ("unknown" or "no") are entries that it does not mention, `uncertain`
    ("unknown", "yes" or "no") those of which it says that nobody is sure.

    Features and labels in one table: `label_columns` names the columns that are labels. Ids of the items are in the
    column `item` or `id`, or in the one that `id_column` names. Where neither items nor labels have ids, the rows of
    both must be of the same items in the same order; `Dataset.notes` says so.

    Pictures in files are all looked at. Bad ones are refused, in one message, or left out (`skip_bad`). They are shown
    at the `size` that is given, else at that which a network wants. Where the labels say which items are to test on, in
    a column `split`, these are the test part.

    Parameters
    ----------
    path : str, Path, or a Hugging Face data set
        A file, a folder, or "scenes" or "digits", which are built in.
    labels : str or Path, optional
        A file of labels, or a ledger.
    hierarchy : str or Path, optional
        A table with the columns child and parent.
    skip_bad : bool
        Leave bad pictures out.
    size : int, optional
        Side of the pictures.
    absent : "unknown" or "no", optional
        Entries that the labels do not mention.
    uncertain : "unknown", "yes" or "no", optional
        Entries of which nobody is sure.
    missing : sequence of str
        Cells that mean unknown, beside blank, NA and ?.
    label_columns : sequence of str
        Columns that are labels: names, patterns such as "label_*", or a range "first..last".
    id_column : str, optional
        The column with the ids of the items.
    tag_separator : str, optional
        What separates the tags of a cell, where a column holds several.

    Returns
    -------
    Dataset
        Items and labels, and what else there is.

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
        _labels_form(Path(path), semantics)  # refuses columns that are not there
    data = _opened(path, labels, semantics)
    if labels is not None:
        data = _labelled(data, path, labels, semantics)
    data = drop_unreadable(data, path, skip_bad)
    if size is not None:
        data = resize_images(data, size)
    if hierarchy is None and labels is not None and ledger_db.recognizes(Path(labels)):
        return replace(data, hierarchy=ledger_db.hierarchy(Path(labels)) or data.hierarchy)
    return data if hierarchy is None else replace(data, hierarchy=read_hierarchy(hierarchy))


def _opened(path: PathLike | Any, labels: PathLike | None, semantics: LabelSemantics) -> Dataset:
    """Items, with what is known of them where that lies with them."""
    if hugging_face.is_object(path):
        return hugging_face.of_object(path, semantics)
    whole = formats.of(Path(path), "dataset")
    if whole is not None:
        data = whole.read(Path(path), semantics)
        return data if labels is None else replace(data, truth=data.labels)
    found = formats.of(Path(path), "items")
    if found is None and labels is None and formats.of(Path(path), "labels") is not None:
        known = read_labels(path, **vars(semantics))
        return Dataset(Absent("features", (0,), len(known)), known)
    if found is None:
        check_file(path, formats.readable("items"))  # says what is wrong with it
        raise DataError(f"{path}: no format knows what items are in it.")
    return found.read(Path(path), semantics)


def _labelled(data: Dataset, path: PathLike, labels: PathLike, semantics: LabelSemantics) -> Dataset:
    """The items of which the labels speak, with these labels; all others beside them, as `wider`."""
    known = read_labels(labels, **vars(semantics))
    note = _by_position(data, known, path, labels, semantics)
    if data.truth is not None:
        known = reorder_columns(known, data.truth.names, str(labels))
    known = match_ids_loosely(known, data.labels.ids)
    listed = find_positions(known.ids, data.labels.ids, path, "item")
    rest = np.setdiff1d(np.arange(len(data.labels)), listed)
    more = append_unlabelled(known, map(data.labels.id_at, rest.tolist())) if len(rest) else known
    whole = replace(data[np.concatenate([listed, rest])], labels=more)
    to_test = read_split(Path(labels)) if data.test is None and not ledger_db.recognizes(Path(labels)) else None
    if to_test is not None and not to_test.any():
        to_test = None  # nothing is set aside to test on
    train = np.arange(len(listed)) if to_test is None else np.flatnonzero(~to_test)
    test = data.test if to_test is None else whole[np.flatnonzero(to_test)]
    with_unlabelled = whole[np.concatenate([train, np.arange(len(listed), len(whole.labels))])] if len(rest) else None
    return replace(
        whole[train],
        test=test,
        with_unlabelled=with_unlabelled,
        notes=(*data.notes, *note, *_called_alike(data, known)),
    )


def _called_alike(data: Dataset, known: Labels) -> tuple[str, ...]:
    """Warn of features that may be the labels themselves."""
    names = getattr(data.items, "column_names", data.items.names)
    alike = [name for name in names or () if name in known.names]
    if not alike:
        return ()
    told = ", ".join(alike[:5]) + (", ..." if len(alike) > 5 else "")
    return (
        f"Warning: {len(alike)} features have the name of a label ({told}). If they are the labels, leave them out: "
        f"--label-columns {','.join(alike[:2])} (label_columns=).",
    )


def _by_position(
    data: Dataset, known: Labels, path: PathLike, labels: PathLike, semantics: LabelSemantics
) -> tuple[str, ...]:
    """Say that rows are matched by position, where neither items nor labels have ids; refuse what may be wrong."""
    file = Path(labels)
    form = None if ledger_db.recognizes(file) else _labels_form(file, semantics)
    positional = form is labels_npy.FORMAT or (
        form in (wide.FORMAT, tag_lists.FORMAT) and view(open_table(file), semantics.id_column).by_position
    )
    if not positional or str(path) == str(labels):
        return ()
    if data.labels.given_ids is not None:
        raise DataError(
            f"{labels}: holds no ids of items, and the items of {path} have some ({data.labels.id_at(0)!r}, ...). Name "
            "the column that holds them: --id-column NAME (id_column=); or add a column 'item'."
        )
    if len(known) != len(data.labels):
        raise DataError(
            f"{labels}: has {len(known)} rows and {path} {len(data.labels)}. Neither has ids, so rows are matched by "
            "position, and there must be equally many. Add a column 'item' with ids to both."
        )
    return (f"Neither {path} nor {labels} has ids: their {len(known):,} rows are matched by position.",)


def read_items(path: PathLike, labels: Sequence[str], skip_bad: bool, semantics: LabelSemantics) -> Dataset:
    """Items of which no label is asked for: columns of a table that are called like `labels`, or that the caller names,
    are left out, where they are there."""
    if not ledger_db.recognizes(Path(path)) and is_table(Path(path)) and Path(path).is_file():
        header = open_table(Path(path)).header
        named = matching_columns(header, semantics.label_columns)
        semantics = replace(semantics, label_columns=(*named, *(name for name in labels if name in header)))
    else:
        semantics = replace(semantics, label_columns=())
    return drop_unreadable(_opened(path, None, semantics), path, skip_bad)


def is_whole(path: PathLike, label_columns: Iterable[str] = ()) -> bool:
    """Whether this is a data set by itself, to which no file of labels need be given: one table is, where the caller
    names the columns that are labels."""
    return formats.of(Path(path), "dataset") is not None or (bool(tuple(label_columns)) and is_table(Path(path)))


def write(data: Dataset | Labels, path: PathLike, *, form: str | None = None, absent: str | None = None) -> None:
    """Labels, as `write_labels` does. Of a data set, where it has a test part, all of it to an `.npz`; else items and
    labels to a format that holds both (`.arff`, `.svm`, form="hugging-face"); else its items, as features, to `.npy`,
    `.npz` or a table: what is known of them goes to a file of its own then.

    Parameters
    ----------
    data : Dataset or Labels
        What is written.
    path : str or Path
        The ending says the format.
    form : str, optional
        The format, where the ending does not.
    absent : "unknown" or "no", optional
        What silence is to mean, in formats that only list what is there.

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
    one: Format = _written_form(data, path) if form is None else formats.by_name(form, "dataset", "items", "labels")
    if isinstance(one, LabelFormat):
        write_labels(data.labels, path, form=form, absent=absent)
        return
    if data.test is not None and one is not train_test.FORMAT:
        raise DataError(f"{path}: has no place for a test part. Write one part at a time, or both to an .npz.")
    if one.positives_only:
        only_yes(data.labels, absent, path)
    if one.write is None:
        raise _not_written(form, path)
    one.write(data, path)


def _written_form(data: Dataset, path: Path) -> DatasetFormat:
    both = format_suffix(path) in formats.suffixes("dataset") and format_suffix(path) not in formats.suffixes("items")
    return formats.by_suffix(path, "dataset" if data.test is not None or both else "items")


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
    """Labels from a file or folder, also one that holds items with them. `names` fixes which labels there are, and
    their order; others in the file are refused. The rest is as for `read`.

    Parameters
    ----------
    path : str or Path
        A file, a folder or a ledger.
    form : str, optional
        The format, where it cannot be found out.
    names : sequence of str, optional
        Which labels there are.
    absent, uncertain, missing, label_columns, id_column, tag_separator
        As for `read`.

    Returns
    -------
    Labels
        What is known.

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
    known = formats.readable("labels", "dataset")
    if form is not None:
        named = formats.by_name(form, "labels", "dataset")
        if named.suffixes and named is not ledger_db.FORMAT:
            check_file(path, formats.readable_by(named))
        one: Format | None = named
    else:
        if not path.is_dir() and not ledger_db.recognizes(path):  # a server's is no file
            check_file(path, known)
        one = _labels_form(path, semantics)
        if one is None:
            check_file(path, known)  # a folder that is none of ours
            raise DataError(f"{path}: no format knows what labels are in it. {_there()}")
    assert one is not None
    if isinstance(one, LabelFormat):
        return one.read(path, names, semantics)
    labels = one.read(path, semantics).labels
    return labels if names is None else semantics.filled(reorder_columns(labels, names, str(path)), path)


def _labels_form(path: Path, semantics: LabelSemantics) -> Format | None:
    """The format of a file of labels; that of a table may depend on what the caller says of its columns."""
    if ledger_db.recognizes(path) or not (is_table(path) and path.is_file()):
        return formats.of(path, "labels") or formats.of(path, "dataset")
    if semantics.label_columns:
        table = view(open_table(path), semantics.id_column)
        chosen = matching_columns(table.header, semantics.label_columns, table.place(-1))
        return tag_lists.FORMAT if len(chosen) == 1 and not holds_values(table, chosen[0]) else wide.FORMAT
    if semantics.id_column is None:
        return formats.of(path, "labels") or formats.of(path, "dataset")
    table = view(open_table(path), semantics.id_column)
    forms = {"long": is_long(table.header), "tags": is_tags(table), "tag-lists": is_tag_lists(table), "wide": True}
    return formats.by_name(next(name for name, fits in forms.items() if fits), "labels")


def write_labels(labels: Labels, path: PathLike, *, form: str | None = None, absent: str | None = None) -> None:
    """Labels to a file, whole or not at all. `form` is one of the formats; without it the suffix decides, a table is
    wide, or long where the labels are sparse. A format that lists what is there and nothing else refuses labels
    that it would make ambiguous, unless the caller says what `absent` is to mean.

    Parameters
    ----------
    labels : Labels
        What is written.
    path : str or Path
        Where to.
    form : str, optional
        One of the formats.
    absent : "unknown" or "no", optional
        What silence is to mean.

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
    LabelSemantics(absent)
    one = formats.by_name(form or _label_form(labels, path), "labels")
    if one.suffixes:
        check_suffix(path, one.suffixes)
    if one.write is None:
        raise _not_written(form, path)
    refuse_unwritable(labels.ids, labels.names, path)
    if one.positives_only:
        only_yes(labels, absent, path)
    one.write(labels, path)


def _label_form(labels: Labels, path: Path) -> str:
    """By the suffix. `.json` and `.txt` are those of several, and of a folder nothing is known: they must be named."""
    suffix = check_suffix(path, formats.suffixes("labels")) if path.suffix else ""
    if format_suffix(path) in SUFFIXES:
        return TABLES[labels.sparse]
    there = {name: one for name, one in formats.formats("labels").items() if one.write is not None}
    of = [name for name, one in there.items() if suffix in (one.suffixes or ("",))]
    if len(of) != 1 or not suffix:
        raise DataError(f"{path}: say in which form: {' or '.join(of)} (form=, --form).")
    return of[0]


def _not_written(form: str | None, path: Path) -> SettingError:
    return SettingError(f"{path}: form = {form!r} is only read. {_there()}")


def _there() -> str:
    both: dict[str, Format] = {**formats.formats("labels"), **formats.formats("dataset")}
    names = [name for name, one in both.items() if one.write is not None]
    return f"Available: {', '.join(names)}."
