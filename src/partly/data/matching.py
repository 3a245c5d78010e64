"""Match items by id and labels by name between two sources."""

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

NORMALIZATIONS: dict[str, Callable[[str], str]] = {
    "case": str.casefold,
    "spaces": lambda word: "".join(word.split()),
    "Unicode form": lambda word: unicodedata.normalize("NFKC", word),
    "case, spaces or Unicode form": lambda word: "".join(unicodedata.normalize("NFKC", word).casefold().split()),
}


def find_positions(
    wanted: Sequence[str], present: Sequence[str], file: PathLike, what: str, remedy: str = ""
) -> npt.NDArray[np.int64]:
    """Return the position of each wanted name in `present`, which comes from `file`; refuse missing ones together."""
    position = {name: i for i, name in enumerate(present)}
    missing = [name for name in wanted if name not in position]
    if missing:
        raise DataError(
            f"{file}: {len(missing)} of the {len(wanted)} {what}s are not in it"
            + listing(map(repr, missing), len(missing))
            + (f"\n{remedy}" if remedy else "")
        )
    return np.array([position[name] for name in wanted], dtype=np.int64)


def reorder_columns(labels: Labels, names: Sequence[str], place: str) -> Labels:
    """Return the labels with the columns `names`; those that are absent are unknown. Other labels are refused."""
    if labels.names == tuple(names):
        return labels
    position = {name: j for j, name in enumerate(names)}
    refuse_unknown_labels([label for label in labels.names if label not in position], names, lambda _: place)
    column_of = np.array([position[label] for label in labels.names], np.int64)
    row, column, value = labels.entries()
    return Labels.from_codes(row, column_of[column], value, names, labels.given_ids, len(labels))


def match_ids_loosely(labels: Labels, item_ids: Sequence[str]) -> Labels:
    """Rename the ids of labels to those of the items, if no id matches exactly.

    Open Images and VOC omit the file extension, others the folder. Either is tried, and used if it is unambiguous.
    """
    if not len(labels) or not set(labels.ids).isdisjoint(item_ids):
        return labels
    for shorten in (lambda name: name.rpartition("/")[2], lambda name: PurePosixPath(name).stem):
        full: dict[str, str] = {}
        ambiguous = {short for name in item_ids if full.setdefault(short := shorten(name), name) != name}
        matches = [full.get(shorten(name)) for name in labels.ids]
        if not ambiguous and None not in matches and len(set(matches)) == len(matches):
            return labels.with_ids(matches)
    return labels


def refuse_unknown_labels(labels: Sequence[str], names: Sequence[str], place: Callable[[str], str]) -> None:
    """Refuse labels that are not among `names`; `place` is called for the first few only."""
    problems = (
        f"{place(label)}: label {label!r} is not among the {len(names)} names.{_nearest(label, names)}"
        for label in labels
    )
    if labels:
        raise DataError(listing(problems, len(labels)).replace("\n  ", "\n").strip())


def refuse_unwritable(ids: Sequence[str], names: Sequence[str], path: Path) -> None:
    """Refuse names that cannot be read back from a file."""
    for what, texts in (("item", ids), ("label", names)):
        bad = [text for text in texts if not _is_writable(text)]
        if bad:
            raise DataError(
                f"{path}: {what}s whose names contain a NUL or are not valid Unicode: {len(bad)}"
                + listing(map(repr, bad), len(bad))
                + "\nThey cannot be written to a file; rename them."
            )


def _is_writable(text: str) -> bool:
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def _nearest(word: str, names: Sequence[str]) -> str:
    for what, normalize in NORMALIZATIONS.items():
        for name in names:
            if normalize(name) == normalize(word):
                return f" Nearest: {name!r} (differs in {what})."
    folded = {name.casefold(): name for name in names}
    near = difflib.get_close_matches(word.casefold(), folded, n=1)
    return f" Nearest: {folded[near[0]]!r}." if near else ""
