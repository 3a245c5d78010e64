"""Matching what two sources say of the same items and labels, by id and by name."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import numpy.typing as npt

from partly.atomic_io import PathLike
from partly.errors import DataError, listing
from partly.labels import Labels

FOLDS: dict[str, Callable[[str], str]] = {
    "case": str.casefold,
    "spaces": lambda word: "".join(word.split()),
    "Unicode form": lambda word: unicodedata.normalize("NFKC", word),
    "case, spaces or Unicode form": lambda word: "".join(unicodedata.normalize("NFKC", word).casefold().split()),
}


def find_positions(wanted: Sequence[str], there: Sequence[str], file: PathLike, what: str) -> npt.NDArray[np.int64]:
    """Where each wanted word stands in `there`, which came from `file`; all that are missing in one message."""
    at = {word: i for i, word in enumerate(there)}
    missing = [word for word in wanted if word not in at]
    if missing:
        raise DataError(
            f"{file}: {len(missing)} of the {len(wanted)} {what}s are not in it"
            + listing((repr(word) for word in missing), len(missing))
        )
    return np.array([at[word] for word in wanted], dtype=np.int64)


def reorder_columns(labels: Labels, names: Sequence[str], place: str) -> Labels:
    """The same labels with the columns that `names` asks for; of those that are absent nothing is known."""
    if labels.names == tuple(names):
        return labels
    position = {name: j for j, name in enumerate(names)}
    refuse_unknown_labels([label for label in labels.names if label not in position], names, lambda _: place)
    column_of = np.array([position[label] for label in labels.names], np.int64)
    row, column, value = labels.entries()
    return Labels.from_codes(row, column_of[column], value, names, labels.given_ids, len(labels))


def match_ids_loosely(labels: Labels, there: Sequence[str]) -> Labels:
    """Labels under the ids that items have. Open Images and VOC call a picture by its name without the ending, others
    leave out the folder; so where no id is there as it is, and each stands for one item then, that is meant."""
    if not len(labels) or not set(labels.ids).isdisjoint(there):
        return labels
    for shorter in (lambda name: name.rpartition("/")[2], lambda name: PurePosixPath(name).stem):
        found: dict[str, str] = {}
        twice = {short for name in there if found.setdefault(short := shorter(name), name) != name}
        meant = [found.get(shorter(name)) for name in labels.ids]
        if not twice and None not in meant and len(set(meant)) == len(meant):
            return labels.with_ids(meant)
    return labels


def refuse_unknown_labels(labels: Sequence[str], names: Sequence[str], place: Callable[[str], str]) -> None:
    """Labels that are not among `names`; `place` is asked for the first few only."""
    told = (
        f"{place(label)}: label {label!r} is not among the {len(names)} names.{_nearest(label, names)}"
        for label in labels
    )
    if labels:
        raise DataError(listing(told, len(labels)).replace("\n  ", "\n").strip())


def refuse_unwritable(ids: Sequence[str], names: Sequence[str], path: Path) -> None:
    """Words that no file would give back as they are."""
    for what, words in (("item", ids), ("label", names)):
        lost = [word for word in words if not _survives(word)]
        if lost:
            raise DataError(
                f"{path}: {what}s whose names hold a NUL or are not valid Unicode: {len(lost)}"
                + listing(map(repr, lost), len(lost))
                + "\nNo file would give them back as they are; rename them."
            )


def _survives(word: str) -> bool:
    try:
        return b"\0" not in word.encode()
    except UnicodeEncodeError:
        return False


def _nearest(word: str, names: Sequence[str]) -> str:
    for what, fold in FOLDS.items():
        for name in names:
            if fold(name) == fold(word):
                return f" Nearest: {name!r} (differs in {what})."
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold(), folded, n=1)
    return f" Nearest: {folded[near[0]]!r}." if near else ""
