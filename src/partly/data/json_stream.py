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
        depth = within = 0  # `within`: how deep the keys are that are asked for
        for event, value in ijson.basic_parse(file):  # not `parse`, whose prefixes grow with what is nested
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
def _opened(path: Path) -> Iterator[BinaryIO]:
    import ijson

    try:
        with unpacked(path) as file:
            yield file
    except (ijson.JSONError, OSError, UnicodeDecodeError) as error:
        told = " ".join(str(error).split())
        raise DataError(f"{path}: not well-formed JSON, or cut off ({told}).") from error
