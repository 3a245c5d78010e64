"""Spellings of yes, no and unknown in text cells, of files and of tables in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

UNKNOWN = ("", "?", "na", "n/a", "#n/a", "<na>", "nan", "null", "unknown")
# Lower case. "-", "none", "x" and the like are missing on purpose: people use them for no and for unknown.
WORDS: Mapping[str, int] = MappingProxyType(
    {"yes": 1, "y": 1, "true": 1, "t": 1} | {"no": -1, "n": -1, "false": -1, "f": -1} | dict.fromkeys(UNKNOWN, 0)
)
SPELLINGS = "1, yes, y or true; 0, no, n or false; or blank, NA or ? (unknown)"


def parse_spelling(word: str, missing: Iterable[str] = ()) -> int | None:
    """Return +1, -1 or 0 for a word; None if it is not recognized. `missing`: further spellings of unknown."""
    folded = word.strip().lower()
    return 0 if folded in {spelling.strip().lower() for spelling in missing} else WORDS.get(folded)
