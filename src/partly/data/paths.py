"""Check paths: regular files only, formats by suffix."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from partly.atomic_io import PathLike
from partly.errors import DataError, LabelError
from partly.ledger.location import is_sqlite

PICKLE_SUFFIXES = (".pt", ".pth", ".pkl", ".pickle", ".joblib")
COMPRESSIBLE = (  # may be compressed
    ".csv", ".tsv", ".jsonl", ".json", ".arff", ".svm", ".libsvm", ".svmlight", ".txt", ".obo",
)  # fmt: skip
CODECS = {".gz": "gzip", ".zst": "zstd"}


def format_suffix(path: Path) -> str:
    """Return the suffix in lower case, without that of the compression: '.csv' for 'a.CSV.gz'."""
    bare = Path(path.stem).suffix.lower()
    return bare if path.suffix.lower() in CODECS and bare in COMPRESSIBLE else path.suffix.lower()


def check_suffix(path: Path, known: Sequence[str]) -> str:
    """Return the suffix in lower case; refuse one that is not among `known`."""
    longer = (end for end in known if end.count(".") > 1 and path.name.lower().endswith(end))  # .vec.gz
    suffix = next(longer, format_suffix(path))
    if suffix in PICKLE_SUFFIXES:
        raise DataError(
            f"{path}: {suffix} files are not read, because reading one can execute code in it. "
            f"Save the arrays as one of {', '.join(known)}."
        )
    if suffix not in known:
        raise DataError(f"{path}: unknown suffix {suffix!r}. Available: {', '.join(known)}.")
    return suffix


def check_file(path: PathLike, known: Sequence[str]) -> Path:
    """Return the path of a readable regular file with a known suffix; refuse anything else."""
    path = Path(path)
    check_suffix(path, known)
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            refuse_database(path)
            path.open("rb").close()  # raises if it may not be read
            return path
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise DataError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise DataError(f"{path}: is {kind}, not a regular file.")


def refuse_database(path: Path) -> None:
    """Refuse a SQLite database: only SQLite may open one (`ledger.location.is_sqlite`)."""
    if is_sqlite(path):
        raise DataError(f"{path}: is a SQLite database, perhaps a ledger, and cannot be read as another format.")


@contextmanager
def error_prefix(path: Path) -> Iterator[None]:
    """Name the file in errors about its labels."""
    try:
        yield
    except LabelError as error:
        raise DataError(f"{path}: {error}") from error
