"""JSON lines (`.jsonl`, `.jsonl.gz`) as a header and a stream of rows of chosen columns: an object a line, cells are
text. The first object names the columns; a later one may lack some."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from partly.errors import DataError

SUFFIXES = (".jsonl", ".jsonl.gz")
MOST_BYTES = 1 << 26  # of a line, before which a compressed file cannot be told from one that never ends
BLOCK = 1 << 12  # rows of a batch


def is_json_lines(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


class JsonTable:
    """A file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        first = next(self._objects(), None)
        if first is None:
            raise DataError(f"{path}: is empty. Every line must be a JSON object.")
        self.header = list(first[1])

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Text and whole numbers as text, a missing cell as ''."""
        rows: list[list[str]] = []
        for number, found in self._objects():
            rows.append([self._cell(found, name, number) for name in columns])
            if len(rows) == BLOCK:
                yield _batch(columns, rows)
                rows = []
        yield _batch(columns, rows)

    def place(self, row: int) -> str:
        """Where a row stands; -1 stands for the columns, which the first row names."""
        if row < 0:
            return f"{self.path}:1"
        numbers = (number for number, _ in self._objects())
        return f"{self.path}:{next(n for k, n in enumerate(numbers) if k == row)}"

    def _cell(self, found: dict[str, Any], name: str, number: int) -> str:
        value = found.get(name)
        if value is None:
            return ""
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
        raise DataError(f"{self.path}:{number}: {name!r} is {value!r:.60}; it must be text or a whole number.")

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every object with its line; blank lines are none."""
        for number, line in _lines(self.path):
            try:
                found = json.loads(line, object_pairs_hook=_distinct)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{self.path}:{number}: no JSON object ({error}).") from error
            if not isinstance(found, dict):
                raise DataError(f"{self.path}:{number}: every line must be a JSON object; this is {line[:40]!r}.")
            yield number, found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as opened:
            file: BinaryIO = opened  # type: ignore[assignment]
            for number, line in enumerate(iter(lambda: file.readline(MOST_BYTES), b""), 1):
                if len(line) == MOST_BYTES:
                    raise DataError(f"{path}:{number}: longer than the {MOST_BYTES} bytes that a line may have.")
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs more than once")
    return found


def _batch(columns: Sequence[str], rows: list[list[str]]) -> Any:
    parts = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.record_batch([pa.array(part, pa.string()) for part in parts], list(columns))
