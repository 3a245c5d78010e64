"""JSON files that are too large to be held: the elements of an array in them, one after the other.

By ijson, which reads in C and holds one element at a time; the json of Python reads whole documents only. A guard
goes over the bytes first: what ijson's C code cannot take (numbers of thousands of digits crash it), or takes at the
square of the cost, is refused before it gets there.
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

DEEPEST = 100  # brackets within brackets: of what is nested deeper, ijson takes time and memory by the square of it
MAX_NUMBER = 1000  # characters: ijson crashes where Python refuses to make a number of a text (4,300 digits)
MAX_ELEMENT = 1 << 26  # bytes of one element, since one is held as a whole, in twenty times the memory
NUMBER = re.compile(rb"[-+.0-9eE]{%d}" % (MAX_NUMBER + 1))
LAST_NUMBER = re.compile(rb"[-+.0-9eE]*\Z")
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
STEPS = np.zeros(256, np.int8)
STEPS[list(b"[{")], STEPS[list(b"]}")] = 1, -1


def elements(path: Path, where: str) -> Iterator[Any]:
    """Every element of the array under a key of the document; '' is the document itself. Numbers are int or float."""
    import ijson

    budget = Budget(path)
    with guarded(path, 2 if where else 1) as file:
        for element in ijson.items(file, f"{where}.item" if where else "item", use_float=True):
            budget.hold_rows(1)
            yield element


def top_keys(path: Path) -> Iterator[str | None]:
    """The keys of a document that is an object, of an array those of its first element after a None; as they come, so
    that no more is read than is asked for. Nothing, where it is no JSON."""
    import ijson

    with guarded(path) as file:
        depth = within = 0  # `within`: how deep the keys are that are asked for
        for event, value in ijson.basic_parse(file):
            if depth == 0 and event == "start_array":
                within = 1
                yield None
            elif event == "map_key" and depth == within + 1:
                yield value
            elif depth == 1 and within and event == "start_array":
                return  # an element without keys, however deep it is
            depth += event.startswith("start_") - event.startswith("end_")
            if depth <= within and event != "start_array":
                return


@contextmanager
def guarded(path: Path, level: int = 2) -> Iterator[_Guard]:
    """A file to read, whose elements lie within `level` brackets; what is no JSON in it is an error of the data."""
    import ijson

    try:
        with open_decompressed(path) as file:
            yield _Guard(path, file, level)
    except (ijson.JSONError, OSError, UnicodeError, ValueError, ArithmeticError) as error:
        if isinstance(error, PartlyError):
            raise
        told = " ".join(str(error).split())
        raise DataError(f"{path}: not well-formed JSON, or cut off ({told}).") from error


class _Guard:
    """A file to read. Brackets, lengths of numbers and of elements are looked at on the way, outside of strings."""

    def __init__(self, path: Path, file: BinaryIO, level: int) -> None:
        self._path, self._file, self._level = path, file, level
        self._depth = self._since = 0  # brackets that are open, and bytes since the last element ended
        self._number = b""  # what may go on in the next part
        self._begun = b""  # of a string that goes on in the next part: its quote, and a backslash at the end

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(size)
        bare, quote, rest = STRING.sub(b"", self._begun + part).partition(b'"')
        self._begun = quote + b"\\" * ((len(rest) - len(rest.rstrip(b"\\"))) % 2)
        self._check_numbers(bare, bool(quote))
        depths = self._depth + np.cumsum(STEPS[np.frombuffer(bare, np.uint8)], dtype=np.int64)
        if depths.max(initial=0) > DEEPEST:
            raise DataError(
                f"{self._path}: brackets within brackets, more than {DEEPEST} deep. Labels are not nested so."
            )
        ended = min(self._depth, int(depths.min(initial=DEEPEST))) <= self._level
        self._since = 0 if ended else self._since + len(part)
        if self._since > MAX_ELEMENT:
            raise DataError(
                f"{self._path}: one element is larger than {MAX_ELEMENT >> 20} MiB. Labels are not so long."
            )
        self._depth = int(depths[-1]) if len(depths) else self._depth
        return part

    def _check_numbers(self, bare: bytes, in_string: bool) -> None:
        bare = self._number + bare
        if found := NUMBER.search(bare):
            raise DataError(f"{self._path}: a number has more than {MAX_NUMBER} digits: {found[0][:20].decode()}...")
        last = LAST_NUMBER.search(bare)
        self._number = b"" if in_string or last is None else last[0]
