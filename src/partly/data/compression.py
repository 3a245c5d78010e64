"""Text files, optionally compressed as `.gz` or `.zst` (by Arrow, so no further library is needed)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from partly.atomic_io import atomic_output
from partly.budget import Budget
from partly.data.paths import CODECS, COMPRESSIBLE


def codec_of(path: Path) -> str | None:
    """Return the compression of a text file by its name; None without compression."""
    inner = Path(path.stem).suffix.lower()
    return CODECS.get(path.suffix.lower()) if inner in COMPRESSIBLE else None


def open_decompressed(path: Path, codec: str | None = None) -> BinaryIO:
    """Open a file for reading, decompressed; refuse it while reading if it expands too much."""
    codec = codec or codec_of(path)
    if codec is None:
        return path.open("rb")
    # A raw stream may return less than requested; the buffer makes it behave like a file.
    return io.BufferedReader(_BudgetedStream(pa.CompressedInputStream(path.open("rb"), codec), Budget(path)), 1 << 20)


class _BudgetedStream(io.RawIOBase):
    """Arrow's stream as a Python stream that raises OSError and counts its bytes."""

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
    """Open a file for writing, compressed if its suffix is one of a compression; written completely or not at all."""
    codec = codec_of(path)
    with atomic_output(path) as file:
        if codec is None:
            yield file
            return
        with pa.CompressedOutputStream(_UnclosedFile(file), codec) as stream:
            yield stream


class _UnclosedFile(io.RawIOBase):
    """A file that stays open when the stream around it is closed, so that it can still be synced."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        return self._file.write(part)
