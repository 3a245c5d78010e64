"""Rows of tags: for each item a list or a set of label names, or one text such as "cat;dog"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from partly.errors import LabelError, did_you_mean, listing
from partly.labels.names import is_missing
from partly.labels.spellings import WORDS

SEPARATORS = (";", "|", ",")
BRACKETED = re.compile(r"""\s*\[\s*(?:(?:'[^'\\]*'|"[^"\\]*"|[0-9]+)\s*(?:,\s*|(?=\])))*\]\s*""")
QUOTED = re.compile(r"""'([^'\\]*)'|"([^"\\]*)"|([0-9]+)""")


def separator_of(texts: Iterable[str], given: str | None, where: str) -> str | None:
    """Return the separator of these texts: the given one, or the only one of `SEPARATORS` that occurs in them."""
    if given is not None:
        if given == "":
            raise LabelError(f"{where}: the separator of tags cannot be empty.")
        return given
    found = dict[str, str]()
    for text in texts:
        if not _is_list(text):
            found |= {letter: text for letter in SEPARATORS if letter in text and letter not in found}
    if len(found) > 1:
        examples = (f"{letter!r} in {text!r:.60}" for letter, text in found.items())
        raise LabelError(
            f"{where}: several characters may separate the tags"
            + listing(examples, len(found))
            + "\nSay which one does: separator=';' (on the command line: --tag-separator ';')."
        )
    return next(iter(found), None)


def split_text(text: str, separator: str | None) -> list[str]:
    """Return the tags of one text: "a;b", or a list in brackets, with quotes around each tag."""
    if _is_list(text):
        if not BRACKETED.fullmatch(text):
            raise ValueError("a list in brackets needs quotes around every tag and commas between them")
        return [next(part for part in found if part) for found in QUOTED.findall(text) if any(found)]
    parts = [text] if separator is None else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


def _is_list(text: str) -> bool:
    return text.lstrip().startswith("[") and text.rstrip().endswith("]")


def read_tags(rows: Iterable[Any], separator: str | None, where: str) -> tuple[list[int], list[str], list[int], int]:
    """Return (item of each tag, each tag, items of which nothing is known, number of items)."""
    cells = list(_rows(rows, where))
    texts = (cell for cell in cells if isinstance(cell, str))
    separator = separator_of(texts, separator, where)
    items, tags, unseen, wrong = list[int](), list[str](), list[int](), list[str]()
    for i, cell in enumerate(cells):
        if _is_nothing(cell):
            unseen.append(i)
            continue
        try:
            found = split_text(cell, separator) if isinstance(cell, str) else _listed(cell)
        except ValueError as error:
            wrong.append(f"item {i}: {cell!r:.60} ({error})")
            continue
        items += [i] * len(found)
        tags += found
    if wrong:
        raise LabelError(
            f"{where}: rows that are no tags: {len(wrong)}"
            + listing(wrong, len(wrong))
            + "\nGive a list or a set of label names for each item, a text such as 'cat;dog', or None where nothing "
            "is known about the item."
        )
    return items, tags, unseen, len(cells)


def look_like_tags(rows: Any) -> bool:
    """Return whether rows are lists or sets of names, or texts that are no spelling of yes, no or unknown."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind not in "OUT":
        return False
    cells = list(rows[:1000]) if isinstance(rows, Sequence | np.ndarray) else []
    if hasattr(rows, "to_list") and not hasattr(rows, "columns"):  # a column of pandas or polars
        cells = rows.head(1000).to_list()
    return any(_are_names(cell) for cell in cells)


def _are_names(cell: Any) -> bool:
    if isinstance(cell, set | frozenset):
        return True
    words = [cell] if isinstance(cell, str) else cell if isinstance(cell, list | tuple | np.ndarray) else []
    return any(isinstance(word, str) and not _is_value(word) for word in words)


def _is_value(word: str) -> bool:
    word = word.strip().lower()
    return word in WORDS or word.lstrip("-").replace(".", "", 1).isdigit()


def _rows(rows: Any, where: str) -> Iterable[Any]:
    if isinstance(rows, str | bytes | dict) or not isinstance(rows, Iterable):
        raise LabelError(
            f"{where}: rows must be a list with the tags of each item; got {rows!r:.60}. One item is [['cat', 'dog']]."
        )
    if getattr(rows, "ndim", 1) > 1 or hasattr(rows, "column_names") or hasattr(rows, "columns"):
        raise LabelError(f"{where}: rows must be one column of tags; got a {type(rows).__name__} with several.")
    return rows.to_pylist() if hasattr(rows, "to_pylist") else rows  # a column of Arrow has a method for it


def _is_nothing(cell: Any) -> bool:
    return not cell.strip() if isinstance(cell, str) else is_missing(cell)


def _listed(cell: Any) -> list[str]:
    """The names in a list or set; those of a set in order, since its own depends on the process."""
    if isinstance(cell, dict | bytes) or not isinstance(cell, Iterable):
        raise ValueError("neither a list nor a text")
    found = []
    for tag in cell:
        name = tag.strip() if isinstance(tag, str) else str(tag) if isinstance(tag, int | np.integer) else ""
        if not name or isinstance(tag, bool | np.bool_):
            raise ValueError(f"{tag!r:.40} is no name of a label")
        found.append(name)
    return sorted(found) if isinstance(cell, set | frozenset) else found


def positions_of(tags: Sequence[str], names: Sequence[str], items: Sequence[int], where: str) -> list[int]:
    """Return where each tag stands among the names; those that are not there are refused."""
    at = {name: j for j, name in enumerate(names)}
    strange = [k for k, tag in enumerate(tags) if tag not in at]
    if strange:
        told = (f"item {items[k]}: {tags[k]!r}.{did_you_mean(tags[k], names)}" for k in strange)
        raise LabelError(
            f"{where}: tags that are not among the {len(names)} names: {len(strange)}" + listing(told, len(strange))
        )
    return [at[tag] for tag in tags]
