"""JSON files that are too large to be held: the elements of an array in them, one after the other.

By ijson, which reads in C and holds one element at a time; the json of Python reads whole documents only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from partly.data.packing import unpacked
from partly.errors import DataError

DEEPEST = 100  # brackets within brackets: of what is nested deeper, ijson takes time and memory by the square of it
STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
STEPS = np.zeros(256, np.int8)
STEPS[list(b"[{")], STEPS[list(b"]}")] = 1, -1


def elements(path: Path, where: str) -> Iterator[Any]:
    """Every element of the array under a key of the document; '' is the document itself. Numbers are int or float."""
    import ijson

    with shallow(path) as file:
        yield from ijson.items(file, f"{where}.item" if where else "item", use_float=True)


def top_keys(path: Path) -> Iterator[str | None]:
    """The keys of a document that is an object, of an array those of its first element after a None; as they come, so
    that no more is read than is asked for. Nothing, where it is no JSON."""
    import ijson

    with shallow(path) as file:
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
def shallow(path: Path) -> Iterator[_Shallow]:
    """A file to read; what is no JSON in it, or nested too deeply, is an error of the data."""
    import ijson

    try:
        with unpacked(path) as file:
            yield _Shallow(path, file)
    except (ijson.JSONError, OSError, UnicodeDecodeError) as error:
        told = " ".join(str(error).split())
        raise DataError(f"{path}: not well-formed JSON, or cut off ({told}).") from error


class _Shallow:
    """A file to read, whose brackets are counted on the way, outside of strings."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file, self._depth = path, file, 0
        self._begun = b""  # of a string that goes on in the next part: its quote, and a backslash at the end

    def read(self, size: int = -1) -> bytes:
        part = self._file.read(size)
        bare, quote, rest = STRING.sub(b"", self._begun + part).partition(b'"')
        self._begun = quote + b"\\" * ((len(rest) - len(rest.rstrip(b"\\"))) % 2)
        depths = self._depth + np.cumsum(STEPS[np.frombuffer(bare, np.uint8)], dtype=np.int64)
        if depths.max(initial=0) > DEEPEST:
            raise DataError(
                f"{self._path}: brackets within brackets, more than {DEEPEST} deep. Labels are not nested so."
            )
        self._depth = int(depths[-1]) if len(depths) else self._depth
        return part
