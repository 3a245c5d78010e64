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


def separator_of(texts: Iterable[str], chosen: str | None, where: str) -> str | None:
    """Return the separator of these texts: the given one, or the only one of `SEPARATORS` that occurs in them."""
    if chosen is not None:
        if chosen == "":
            raise LabelError(f"{where}: the separator of tags cannot be empty.")
        return chosen
    examples_of = dict[str, str]()
    for text in texts:
        if not _is_list(text):
            examples_of |= {
                separator: text for separator in SEPARATORS if separator in text and separator not in examples_of
            }
    if len(examples_of) > 1:
        examples = (f"{separator!r} in {text!r:.60}" for separator, text in examples_of.items())
        raise LabelError(
            f"{where}: several characters may separate the tags"
            + listing(examples, len(examples_of))
            + "\nSay which one does: separator=';' (on the command line: --tag-separator ';')."
        )
    return next(iter(examples_of), None)


def split_text(text: str, separator: str | None) -> list[str]:
    """Return the tags of one text: "a;b", or a list in brackets, with quotes around each tag."""
    if _is_list(text):
        if not BRACKETED.fullmatch(text):
            raise ValueError("a list in brackets needs quotes around every tag and commas between them")
        return [next(part for part in groups if part) for groups in QUOTED.findall(text) if any(groups)]
    tags = [text] if separator is None else text.split(separator)
    return [part.strip() for part in tags if part.strip()]


def _is_list(text: str) -> bool:
    return text.lstrip().startswith("[") and text.rstrip().endswith("]")


def read_tags(rows: Iterable[Any], separator: str | None, where: str) -> tuple[list[int], list[str], list[int], int]:
    """Return the item of each tag, the tags, the items without information, and the number of items."""
    cells = list(_rows(rows, where))
    texts = (cell for cell in cells if isinstance(cell, str))
    separator = separator_of(texts, separator, where)
    items, tags, unseen, wrong = list[int](), list[str](), list[int](), list[str]()
    for i, cell in enumerate(cells):
        if _is_nothing(cell):
            unseen.append(i)
            continue
        try:
            cell_tags = split_text(cell, separator) if isinstance(cell, str) else _tags_in(cell)
        except ValueError as error:
            wrong.append(f"item {i}: {cell!r:.60} ({error})")
            continue
        items += [i] * len(cell_tags)
        tags += cell_tags
    if wrong:
        raise LabelError(
            f"{where}: rows that are no tags: {len(wrong)}"
            + listing(wrong, len(wrong))
            + "\nGive a list or a set of label names for each item, a text such as 'cat;dog', or None where nothing "
            "is known about the item."
        )
    return items, tags, unseen, len(cells)


def look_like_tags(rows: Any) -> bool:
    """Return whether rows are lists or sets of names, or texts other than spellings of yes, no and unknown."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind not in "OUT":
        return False
    cells = list(rows[:1000]) if isinstance(rows, Sequence | np.ndarray) else []
    if hasattr(rows, "to_list") and not hasattr(rows, "columns"):  # a column of pandas or polars
        cells = rows.head(1000).to_list()
    return any(_are_names(cell) for cell in cells)


def _are_names(cell: Any) -> bool:
    if isinstance(cell, set | frozenset):
        return True
    tags = [cell] if isinstance(cell, str) else cell if isinstance(cell, list | tuple | np.ndarray) else []
    return any(isinstance(word, str) and not _is_value(word) for word in tags)


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


def _tags_in(cell: Any) -> list[str]:
    """Return the tags of a list or set; those of a set sorted, because its order depends on the process."""
    if isinstance(cell, dict | bytes) or not isinstance(cell, Iterable):
        raise ValueError("neither a list nor a text")
    tags = []
    for tag in cell:
        name = tag.strip() if isinstance(tag, str) else str(tag) if isinstance(tag, int | np.integer) else ""
        if not name or isinstance(tag, bool | np.bool_):
            raise ValueError(f"{tag!r:.40} is no name of a label")
        tags.append(name)
    return sorted(tags) if isinstance(cell, set | frozenset) else tags


def positions_of(tags: Sequence[str], names: Sequence[str], items: Sequence[int], where: str) -> list[int]:
    """Return the position of each tag among the names; unknown tags are refused."""
    position = {name: j for j, name in enumerate(names)}
    unknown = [k for k, tag in enumerate(tags) if tag not in position]
    if unknown:
        places = (f"item {items[k]}: {tags[k]!r}.{did_you_mean(tags[k], names)}" for k in unknown)
        raise LabelError(
            f"{where}: tags that are not among the {len(names)} names: {len(unknown)}" + listing(places, len(unknown))
        )
    return [position[tag] for tag in tags]
