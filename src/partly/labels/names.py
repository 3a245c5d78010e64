"""Names of labels and ids of items: texts that nobody can mix up."""

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
    """The names of labels (`count`, where that is fixed), as texts."""
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
    """The ids of items (`count`, where that is fixed), as texts."""
    result = _texts(ids, count, "item", "id")
    if len(set(result)) < len(result):
        twice = [repr(key) for key, n in Counter(result).items() if n > 1]
        raise LabelError(
            f"{len(twice)} item ids occur more than once; give every item its own" + listing(twice, len(twice))
        )
    return result


def fold(name: str) -> str:
    """What two names have in common that differ only in case, outer spaces or Unicode form."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas calls missing (told by its type's name: pandas need not be there)."""
    nan = isinstance(value, float | np.floating) and np.isnan(value)
    return value is None or bool(nan) or type(value).__name__ in ("NAType", "NaTType")


def encode_words(words: Iterable[object], order: Names | None, what: str) -> tuple[Names, npt.NDArray[np.int64]]:
    """The words' positions in `order`, or in the order of first appearance: (that order, [len(words)])."""
    texts, codes = _encoded(words)
    known = tuple(dict.fromkeys(text for text in texts if text is not None)) if order is None else order
    position = {text: i for i, text in enumerate(known)}
    # The last place stands for "no word at all", because that is where code -1 points.
    places = np.array([-2 if text is None else position.get(text, -1) for text in texts] + [-2], np.int64)
    found = places[codes]
    lost = np.flatnonzero(found == -2)
    if len(lost):
        entries = (f"entry {i}" for i in lost)
        raise LabelError(f"Labels.from_entries: {len(lost)} entries have no {what}" + listing(entries, len(lost)))
    lost = np.flatnonzero(found == -1)
    if len(lost):
        strange, first = np.unique(codes[lost], return_index=True)
        near = {k: did_you_mean(str(texts[k]), known) if what == "label" else "" for k in strange[:5]}
        lines = (f"entry {lost[i]}: {texts[k]!r}.{near[k]}" for k, i in zip(strange, first, strict=True))
        raise LabelError(
            f"Labels.from_entries: {len(strange)} {what}s, in {len(lost)} entries, are not among the {len(known)} given"
            + listing(lines, len(strange))
        )
    return known, found


def _encoded(words: Any) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """(the different texts in order of appearance, None for no text; the words' codes, -1 for no word)."""
    import pyarrow as pa

    arrow = isinstance(words, pa.Array | pa.ChunkedArray)
    typed = arrow or getattr(words, "dtype", None) not in (None, object)
    words = words if typed else list(words)
    try:
        column = words if arrow else pa.array(words, None if typed else pa.string())
    except (pa.ArrowException, UnicodeError):  # not all of one type, or no valid Unicode: one by one
        seen: dict[str | None, int] = {}
        codes = np.array([seen.setdefault(_text(word), len(seen)) for word in words], np.int64)
        return list(seen), codes
    column = pa.chunked_array([column]) if isinstance(column, pa.Array) else column
    if pa.types.is_dictionary(column.type):  # decoded, because it may list words that do not occur
        column = column.cast(column.type.value_type)
    column = column.dictionary_encode().unify_dictionaries().combine_chunks()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return [_text(word) for word in column.dictionary.to_pylist()], codes


def _texts(words: Iterable[object], count: int | None, what: str, word: str) -> Names:
    """The words (name or id) of whats (labels or items), as texts."""
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
    """A word as text; None where it is missing, blank or bytes that are no UTF-8."""
    if isinstance(word, bytes):
        try:
            word = word.decode()
        except UnicodeDecodeError:
            return None
    text = "" if not isinstance(word, str) and is_missing(word) else str(word)
    return text if text.strip() else None
