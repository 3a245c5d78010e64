"""Paths at the door: plain files only, formats by suffix."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from partly.atomic_io import PathLike
from partly.errors import DataError, LabelError
from partly.ledger.location import is_sqlite

UNSAFE = (".pt", ".pth", ".pkl", ".pickle", ".joblib")
TEXT = (".csv", ".tsv", ".jsonl", ".json", ".arff", ".svm", ".libsvm", ".svmlight", ".txt")  # what may be packed
PACKED = {".gz": "gzip", ".zst": "zstd"}


def format_suffix(path: Path) -> str:
    """The suffix in lower case, without that of the packing: '.csv' of 'a.CSV.gz'."""
    bare = Path(path.stem).suffix.lower()
    return bare if path.suffix.lower() in PACKED and bare in TEXT else path.suffix.lower()


def check_suffix(path: Path, known: Sequence[str]) -> str:
    """The suffix in lower case, one of `known`."""
    longer = (end for end in known if end.count(".") > 1 and path.name.lower().endswith(end))  # .vec.gz
    suffix = next(longer, format_suffix(path))
    if suffix in UNSAFE:
        raise DataError(
            f"{path}: {suffix} files are not read, because reading one can execute code that it brings along. "
            f"Save the arrays as one of {', '.join(known)}."
        )
    if suffix not in known:
        raise DataError(f"{path}: the suffix {suffix!r} is not known here. Available: {', '.join(known)}.")
    return suffix


def check_file(path: PathLike, known: Sequence[str]) -> Path:
    """A file that exists, has a known suffix, and can be read without waiting for somebody."""
    path = Path(path)
    check_suffix(path, known)
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            refuse_database(path)
            path.open("rb").close()  # may it be read?
            return path
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise DataError(f"{path}: is {kind}, not a plain file.")


def refuse_database(path: Path) -> None:
    """Refuse a SQLite database: only SQLite may open one (`places.is_sqlite`)."""
    if is_sqlite(path):
        raise DataError(f"{path}: is a SQLite database, a ledger perhaps, and cannot be read as another format.")


@contextmanager
def error_prefix(path: Path) -> Iterator[None]:
    """Say which file the labels came from when they are refused."""
    try:
        yield
    except LabelError as error:
        raise DataError(f"{path}: {error}") from error
