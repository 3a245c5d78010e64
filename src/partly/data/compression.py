"""Text files as they are or packed, `.gz` and `.zst`: Arrow packs and unpacks both, so no further library is needed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from partly.atomic_io import atomic_output
from partly.budget import Budget
from partly.data.paths import PACKED, TEXT


def codec_of(path: Path) -> str | None:
    """How a file is packed, by its name; only text is."""
    bare = Path(path.stem).suffix.lower()
    return PACKED.get(path.suffix.lower()) if bare in TEXT else None


def open_decompressed(path: Path, codec: str | None = None) -> BinaryIO:
    """The bytes of a file as they were before it was packed; refused where they are far more than it holds."""
    codec = codec or codec_of(path)
    if codec is None:
        return path.open("rb")
    # What a raw stream gives may be short; behind a buffer it is read as a file is, line by line too.
    return io.BufferedReader(_Raw(pa.CompressedInputStream(path.open("rb"), codec), Budget(path)), 1 << 20)


class _Raw(io.RawIOBase):
    """Arrow's stream as one of Python's own, whose errors are those of a file."""

    def __init__(self, stream: Any, budget: Budget) -> None:
        self._stream, self._budget = stream, budget

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            part = self._stream.read(len(buffer))
        except pa.ArrowException as error:
            raise OSError(str(error)) from error
        self._budget.unpack(len(part))
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        self._stream.close()
        super().close()


@contextmanager
def open_compressed(path: Path) -> Iterator[BinaryIO]:
    """A file to write, packed where its name says so; whole, or not at all."""
    codec = codec_of(path)
    with atomic_output(path) as file:
        if codec is None:
            yield file
            return
        with pa.CompressedOutputStream(_Kept(file), codec) as stream:
            yield stream


class _Kept(io.RawIOBase):
    """A file that stays open when the stream around it is closed: it has yet to reach the disk."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        return self._file.write(part)
