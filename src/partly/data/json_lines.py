"""JSON lines (`.jsonl`, also packed) as a header and a stream of rows of chosen columns: an object a line, cells are
text. The first object names the columns; a later one may lack some, and have others only where not all are asked
for. Where all it holds is null it is no row."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from partly.budget import Budget
from partly.data.compression import open_decompressed
from partly.errors import DataError

MOST_BYTES = 1 << 26  # of a line, before which a compressed file cannot be told from one that never ends
BLOCK = 1 << 12  # rows of a batch


class JsonTable:
    """A file of JSON lines."""

    decimal_comma = False

    def __init__(self, path: Path) -> None:
        self.path, self.budget = path, Budget(path)
        first = next(self._objects(), None)
        if first is None:
            raise DataError(f"{path}: is empty. Every line must be a JSON object.")
        self.header = list(first[1])

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Text and numbers as text, true and false as 1 and 0, a list as the JSON of it, a missing cell as ''."""
        rows: list[list[str]] = []
        whole = set(columns) >= set(self.header)
        for number, found in self._rows():
            strange = found.keys() - set(self.header) if whole else ()
            if strange:
                raise DataError(
                    f"{self._where(number)}: {', '.join(map(repr, sorted(strange)))} is not in the first object. "
                    "Name there all that any object has, null where it has none."
                )
            rows.append([self._cell(found, name, number) for name in columns])
            if len(rows) == BLOCK:
                yield _batch(columns, rows)
                rows = []
        yield _batch(columns, rows)

    def place(self, row: int) -> str:
        """Where a row stands; -1 stands for the columns, which the first row names."""
        if row < 0:
            return f"{self.path}:1"
        numbers = (number for number, _ in self._rows())
        return f"{self.path}:{next(n for k, n in enumerate(numbers) if k == row)}"

    def first_objects(self) -> Iterator[dict[str, Any]]:
        """The objects as they come."""
        return (found for _, found in self._objects())

    def _where(self, number: int) -> str:
        return f"{self.path}:{number}"

    def _cell(self, found: dict[str, Any], name: str, number: int) -> str:
        value = found.get(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            return str(int(value) if isinstance(value, bool) else value)
        if isinstance(value, list) and all(isinstance(part, str | int) for part in value):
            return json.dumps(value, ensure_ascii=False)
        raise DataError(
            f"{self._where(number)}: {name!r} is {value!r:.60}; it must be text, a number or a list of texts."
        )

    def _rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """A line of nulls only names columns."""
        return (
            (number, found) for number, found in self._objects() if any(cell is not None for cell in found.values())
        )

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every object with its line; blank lines are none."""
        for number, line in _lines(self.path):
            try:
                found = json.loads(line, object_pairs_hook=_distinct)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{self.path}:{number}: no JSON object ({error}).") from error
            if (b"\\u" in line or b"\xed" in line) and not _is_unicode(found):
                raise DataError(f"{self.path}:{number}: holds half of a letter (\\ud800 to \\udfff), which is no text.")
            if not isinstance(found, dict):
                raise DataError(f"{self.path}:{number}: every line must be a JSON object; this is {line[:40]!r}.")
            yield number, found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with open_decompressed(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MOST_BYTES), b""), 1):
                if len(line) == MOST_BYTES:
                    raise DataError(f"{path}:{number}: longer than the {MOST_BYTES} bytes that a line may have.")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _is_unicode(found: Any) -> bool:
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs more than once")
    return found


def _batch(columns: Sequence[str], rows: list[list[str]]) -> Any:
    parts = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.record_batch([pa.array(part, pa.string()) for part in parts], list(columns))
