"""Check names of labels and ids of items: unique, not blank, and easy to tell apart."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import LabelError, did_you_mean, listing

Names = tuple[str, ...]


def check_names(names: Iterable[object], count: int | None = None) -> Names:
    """Return the names of labels as texts; refuse blank names and names that differ only in case or spaces."""
    result = _texts(names, count, "label", "name")
    folded = [fold(name) for name in result]
    first = {key: j for j, key in reversed(list(enumerate(folded)))}
    twice = [(result[first[key]], result[j]) for j, key in enumerate(folded) if first[key] != j]
    if twice:
        raise LabelError(
            "Label names must differ by more than case, spaces or Unicode form; these are the same"
            + listing((f"{a!r} and {b!r}" for a, b in twice), len(twice))
        )
    return result


def check_ids(ids: Iterable[object], count: int | None = None) -> Names:
    """Return the ids of items as texts; refuse blank and repeated ones."""
    result = _texts(ids, count, "item", "id")
    if len(set(result)) < len(result):
        twice = [repr(key) for key, n in Counter(result).items() if n > 1]
        raise LabelError(
            f"{len(twice)} item ids occur more than once; give every item its own" + listing(twice, len(twice))
        )
    return result


def fold(name: str) -> str:
    """Normalize case, outer spaces and Unicode form, to compare names."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN or a missing value of pandas (by type name, without importing pandas)."""
    nan = isinstance(value, float | np.floating) and np.isnan(value)
    return value is None or bool(nan) or type(value).__name__ in ("NAType", "NaTType")


def encode_words(words: Iterable[object], order: Names | None, what: str) -> tuple[Names, npt.NDArray[np.int64]]:
    """Return `order`, or the distinct words by first appearance, and the position of each word in it."""
    texts, codes = _encode(words)
    known = tuple(dict.fromkeys(text for text in texts if text is not None)) if order is None else order
    position = {text: i for i, text in enumerate(known)}
    # The last place stands for a missing word, because code -1 points there.
    places = np.array([-2 if text is None else position.get(text, -1) for text in texts] + [-2], np.int64)
    positions = places[codes]
    bad = np.flatnonzero(positions == -2)
    if len(bad):
        entries = (f"entry {i}" for i in bad)
        raise LabelError(f"Labels.from_entries: {len(bad)} entries have no {what}" + listing(entries, len(bad)))
    bad = np.flatnonzero(positions == -1)
    if len(bad):
        unknown, first = np.unique(codes[bad], return_index=True)
        near = {k: did_you_mean(str(texts[k]), known) if what == "label" else "" for k in unknown[:5]}
        lines = (f"entry {bad[i]}: {texts[k]!r}.{near[k]}" for k, i in zip(unknown, first, strict=True))
        raise LabelError(
            f"Labels.from_entries: {len(unknown)} {what}s, in {len(bad)} entries, are not among the {len(known)} given"
            + listing(lines, len(unknown))
        )
    return known, positions


def _encode(words: Any) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """Return the distinct texts by first appearance (None if missing), and the code of each word (-1 if missing)."""
    import pyarrow as pa

    arrow = isinstance(words, pa.Array | pa.ChunkedArray)
    typed = arrow or getattr(words, "dtype", None) not in (None, object)
    words = words if typed else list(words)
    try:
        column = words if arrow else pa.array(words, None if typed else pa.string())
    except (pa.ArrowException, UnicodeError):  # not all of one type, or no valid Unicode: one by one
        codes_of: dict[str | None, int] = {}
        codes = np.array([codes_of.setdefault(_text(word), len(codes_of)) for word in words], np.int64)
        return list(codes_of), codes
    column = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
    if pa.types.is_dictionary(column.type):  # decoded, because it may list words that do not occur
        column = column.cast(column.type.value_type)
    column = column.dictionary_encode().unify_dictionaries().combine_chunks()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return [_text(word) for word in column.dictionary.to_pylist()], codes


def _texts(words: Iterable[object], count: int | None, what: str, word: str) -> Names:
    """Convert names or ids to texts; `what` and `word` describe them in messages."""
    if isinstance(words, str | bytes):
        raise LabelError(f"The {what} {word}s must be a list of them, not the one text {words!r}.")
    result = [_text(w) for w in words]
    if count is not None and len(result) != count:
        raise LabelError(f"{len(result)} {word}s for {count} {what}s.")
    empty = [i for i, text in enumerate(result) if text is None]
    if empty:
        places = (f"{what} {i}" for i in empty)
        raise LabelError(
            f"{len(empty)} {what}s have an empty or missing {word}; give every {what} one" + listing(places, len(empty))
        )
    return tuple(text for text in result if text is not None)


def _text(word: object) -> str | None:
    """Convert a word to text; None if it is missing, blank or not UTF-8."""
    if isinstance(word, bytes):
        try:
            word = word.decode()
        except UnicodeDecodeError:
            return None
    text = "" if not isinstance(word, str) and is_missing(word) else str(word)
    return text if text.strip() else None
