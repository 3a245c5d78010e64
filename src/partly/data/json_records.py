"""A JSON file that holds one list of flat objects (`.json`, also packed): a table, an object a row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from partly.data.json_lines import JsonTable
from partly.data.json_stream import guarded
from partly.data.paths import format_suffix
from partly.errors import DataError, PartlyError

SUFFIX = ".json"


class JsonRecords(JsonTable):
    """Like JSON lines; a row is named by its number in the list, from 1."""

    def place(self, row: int) -> str:
        return f"{self.path}: record {max(row, 0) + 1}"

    def _where(self, number: int) -> str:
        return f"{self.path}: record {number}"

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        import ijson

        with guarded(self.path, 1) as file:
            for number, found in enumerate(ijson.items(file, "item", use_float=True, map_type=_Distinct), 1):
                if not isinstance(found, _Distinct):
                    raise DataError(f"{self._where(number)}: every element must be an object; this is {found!r:.40}.")
                if found.repeated is not None:
                    raise DataError(
                        f"{self._where(number)}: holds the name {found.repeated!r:.60} more than once. Leave one."
                    )
                yield number, found


class _Distinct(dict[str, Any]):
    """An object that remembers a name that occurs twice. It raises nothing: ijson's C code, which fills it, ignores
    errors."""

    repeated: str | None = None

    def __setitem__(self, name: str, value: Any) -> None:
        if name in self:
            self.repeated = name
        super().__setitem__(name, value)


def is_records(path: Path) -> bool:
    """Whether this is a list of objects whose values are plain, or lists of plain values: by its first object. Tasks
    and annotations of other formats hold objects within objects."""
    if format_suffix(path) != SUFFIX or not path.is_file():
        return False
    try:
        first = next(JsonRecords(path).first_objects(), None)
    except PartlyError:
        return False
    return first is not None and not any(_is_nested(value) for value in first.values())


def _is_nested(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(part, dict | list) for part in value))
