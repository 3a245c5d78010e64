"""JSON as tables: JSON lines (`.jsonl`), or a list of flat objects (`.json`), optionally compressed.

Cells are text. The first object names the columns; later ones may lack some. An object of nulls is not a row.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from partly.budget import Budget
from partly.data.compression import open_decompressed
from partly.data.json_stream import open_checked
from partly.data.paths import format_suffix
from partly.errors import DataError, PartlyError

MAX_LINE_BYTES = 1 << 26  # a compressed file cannot be told from an endless line otherwise
BLOCK_ROWS = 1 << 12


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
        """Yield batches of text: true and false are 1 and 0, a list is its JSON, a missing cell is ''."""
        rows: list[list[str]] = []
        all_columns = set(columns) >= set(self.header)
        for number, values in self._rows():
            extra = values.keys() - set(self.header) if all_columns else ()
            if extra:
                raise DataError(
                    f"{self._where(number)}: {', '.join(map(repr, sorted(extra)))} is not in the first object. "
                    "The first object must have all names; use null for those without a value."
                )
            rows.append([self._cell(values, name, number) for name in columns])
            if len(rows) == BLOCK_ROWS:
                yield _batch(columns, rows)
                rows = []
        yield _batch(columns, rows)

    def place(self, row: int) -> str:
        """Return the location of a row for messages; -1 is the header, which the first row holds."""
        if row < 0:
            return f"{self.path}:1"
        numbers = (number for number, _ in self._rows())
        return f"{self.path}:{next(n for k, n in enumerate(numbers) if k == row)}"

    def first_objects(self) -> Iterator[dict[str, Any]]:
        return (values for _, values in self._objects())

    def _where(self, number: int) -> str:
        return f"{self.path}:{number}"

    def _cell(self, values: dict[str, Any], name: str, number: int) -> str:
        value = values.get(name)
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
        """Yield the objects that are not all null."""
        objects = self._objects()
        return ((number, values) for number, values in objects if any(cell is not None for cell in values.values()))

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield every object with its line number; blank lines are skipped."""
        for number, line in _lines(self.path):
            try:
                values = json.loads(line, object_pairs_hook=_unique_keys)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{self.path}:{number}: no JSON object ({error}).") from error
            if (b"\\u" in line or b"\xed" in line) and not _is_unicode(values):
                raise DataError(
                    f"{self.path}:{number}: contains half a surrogate pair (\\ud800 to \\udfff), which is not text."
                )
            if not isinstance(values, dict):
                raise DataError(f"{self.path}:{number}: every line must be a JSON object; this is {line[:40]!r}.")
            yield number, values


class JsonRecords(JsonTable):
    """A file that holds one list of flat objects; a row is identified by its number in the list, from 1."""

    def place(self, row: int) -> str:
        return f"{self.path}: record {max(row, 0) + 1}"

    def _where(self, number: int) -> str:
        return f"{self.path}: record {number}"

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        import ijson

        with open_checked(self.path, 1) as file:
            for number, values in enumerate(ijson.items(file, "item", use_float=True, map_type=_Record), 1):
                if not isinstance(values, _Record):
                    raise DataError(f"{self._where(number)}: every element must be an object; this is {values!r:.40}.")
                if values.repeated is not None:
                    raise DataError(
                        f"{self._where(number)}: has the name {values.repeated!r:.60} more than once. Remove one."
                    )
                yield number, values


class _Record(dict[str, Any]):
    """An object that remembers a repeated name; it cannot raise, because ijson's C code ignores errors here."""

    repeated: str | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            self.repeated = name
        super().__setitem__(name, value)


def is_records(path: Path) -> bool:
    """Return whether a `.json` file is a list of flat objects, by its first object; other formats nest objects."""
    if format_suffix(path) != ".json" or not path.is_file():
        return False
    try:
        first = next(JsonRecords(path).first_objects(), None)
    except PartlyError:
        return False
    return first is not None and not any(_is_nested(value) for value in first.values())


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(part, dict | list) for part in value))


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with open_decompressed(path) as file:
            for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES), b""), 1):
                if len(line) == MAX_LINE_BYTES:
                    raise DataError(f"{path}:{number}: a line is longer than {MAX_LINE_BYTES} bytes.")
                if line.strip():
                    yield number, line
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _is_unicode(values: Any) -> bool:
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a name occurs more than once")
    return values


def _batch(columns: Sequence[str], rows: list[list[str]]) -> Any:
    arrays = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.record_batch([pa.array(array, pa.string()) for array in arrays], list(columns))
