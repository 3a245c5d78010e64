"""JSON files that are too large to be held: the elements of an array in them, one after the other.

By ijson, which reads in C and holds one element at a time; the json of Python reads whole documents only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from partly.data.packing import unpacked
from partly.errors import DataError


def elements(path: Path, where: str) -> Iterator[Any]:
    """Every element of the array under a key of the document; '' is the document itself. Numbers are int or float."""
    import ijson

    with _opened(path) as file:
        yield from ijson.items(file, f"{where}.item" if where else "item", use_float=True)


def top_keys(path: Path) -> Iterator[str | None]:
    """The keys of a document that is an object, of an array those of its first element after a None; as they come, so
    that no more is read than is asked for. Nothing, where it is no JSON."""
    import ijson

    with _opened(path) as file:
        for prefix, event, value in ijson.parse(file):
            if prefix == "" and event == "start_array":
                yield None
            elif event == "map_key" and prefix in ("", "item"):
                yield value
            elif prefix in ("", "item") and event in ("end_map", "end_array", "null", "string", "number", "boolean"):
                return


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    import ijson

    try:
        with unpacked(path) as file:
            yield file
    except (ijson.JSONError, OSError, UnicodeDecodeError) as error:
        told = " ".join(str(error).split())
        raise DataError(f"{path}: not well-formed JSON, or cut off ({told}).") from error
