"""Stream the elements of an array in a JSON file that is too large for memory, with ijson.

A guard checks the bytes first: it refuses input that crashes ijson's C code (numbers of thousands of digits) or takes
it quadratic time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from partly.budget import Budget
from partly.data.compression import open_decompressed
from partly.errors import DataError, PartlyError

MAX_DEPTH = 100  # of nested brackets: ijson takes quadratic time and memory
MAX_DIGITS = 1000  # ijson crashes on numbers that Python refuses to parse (4,300 digits)
MAX_ELEMENT_BYTES = 1 << 26  # one element is held in memory, in twenty times its size
NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % (MAX_DIGITS + 1))
LAST_NUMBER = re.compile(rb"[-+.0-9eE]*\Z")
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
STEPS = np.zeros(256, np.int8)
STEPS[list(b"[{")], STEPS[list(b"]}")] = 1, -1


def elements(path: Path, where: str) -> Iterator[Any]:
    """Yield the elements of the array under a key of the document; '' is the document itself."""
    import ijson

    budget = Budget(path)
    with open_checked(path, 2 if where else 1) as file:
        for element in ijson.items(file, f"{where}.item" if where else "item", use_float=True):
            budget.hold_rows(1)
            yield element


def top_keys(path: Path) -> Iterator[str | None]:
    """Yield the keys of a document lazily; for an array, None and then the keys of its first element."""
    import ijson

    with open_checked(path) as file:
        depth = within = 0  # `within`: depth of the object whose keys are yielded
        for event, value in ijson.basic_parse(file):
            if depth == 0 and event == "start_array":
                within = 1
                yield None
            elif event == "map_key" and depth == within + 1:
                yield value
            elif depth == 1 and within and event == "start_array":
                return  # the first element is not an object
            depth += event.startswith("start_") - event.startswith("end_")
            if depth <= within and event != "start_array":
                return


@contextmanager
def open_checked(path: Path, level: int = 2) -> Iterator[_Guard]:
    """Open a file whose elements lie within `level` brackets; malformed JSON raises DataError."""
    import ijson

    try:
        with open_decompressed(path) as file:
            yield _Guard(path, file, level)
    except (ijson.JSONError, OSError, UnicodeError, ValueError, ArithmeticError) as error:
        if isinstance(error, PartlyError):
            raise
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not well-formed JSON, or truncated ({reason}).") from error


class _Guard:
    """A file that checks nesting, digits and the size of elements while it is read, outside of strings."""

    def __init__(self, path: Path, file: BinaryIO, level: int) -> None:
        self._path, self._file, self._level = path, file, level
        self._depth = self._since = 0  # open brackets, and bytes since the last element ended
        self._number = b""  # may continue in the next chunk
        self._begun = b""  # string that continues in the next chunk: its quote, and a trailing backslash

    def read(self, size: int = -1) -> bytes:
        chunk = self._file.read(size)
        bare, quote, rest = STRING.sub(b"", self._begun + chunk).partition(b'"')
        self._begun = quote + b"\\" * ((len(rest) - len(rest.rstrip(b"\\"))) % 2)
        self._check_numbers(bare, bool(quote))
        depths = self._depth + np.cumsum(STEPS[np.frombuffer(bare, np.uint8)], dtype=np.int64)
        if depths.max(initial=0) > MAX_DEPTH:
            raise DataError(f"{self._path}: brackets are nested more than {MAX_DEPTH} deep, which no label file needs.")
        ended = min(self._depth, int(depths.min(initial=MAX_DEPTH))) <= self._level
        self._since = 0 if ended else self._since + len(chunk)
        if self._since > MAX_ELEMENT_BYTES:
            raise DataError(
                f"{self._path}: one element is larger than {MAX_ELEMENT_BYTES >> 20} MiB, which no label file needs."
            )
        self._depth = int(depths[-1]) if len(depths) else self._depth
        return chunk

    def _check_numbers(self, bare: bytes, in_string: bool) -> None:
        bare = self._number + bare
        if long_number := NUMBER.search(bare):
            raise DataError(
                f"{self._path}: a number has more than {MAX_DIGITS} digits: {long_number[0][:20].decode()}..."
            )
        last = LAST_NUMBER.search(bare)
        self._number = b"" if in_string or last is None else last[0]
