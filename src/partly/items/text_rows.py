"""Texts. A batch holds their UTF-8 bytes, uint8 [B, MAX_BYTES], padded with zeros.

Tokenization is up to the backbone; `decode_texts` returns the texts of a batch.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.errors import DataError, listing
from partly.items.contract import Index, Kind, Positions, Statistics, identity_statistics, select_rows

MAX_BYTES = 4096  # of a text; one size for all, so that a model accepts any text


class Spool:
    """Texts in an anonymous temporary file, so that any number of them takes no memory.

    The file is read instead of mapped, because mapped pages would count as memory of the process.
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self.size = file, size
        weakref.finalize(self, file.close)

    def __getitem__(self, part: slice) -> npt.NDArray[np.uint8]:
        return np.frombuffer(os.pread(self._file.fileno(), part.stop - part.start, part.start), np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as an array, for another process."""
        return np.array, (self[0 : self.size],)


@dataclass(frozen=True, eq=False)
class TextRows:
    """All or some texts of a concatenated buffer in memory or in a file."""

    content: npt.NDArray[np.uint8] | Spool  # all texts
    ends: npt.NDArray[np.int64]  # [N + 1]: text i is content[ends[i] : ends[i + 1]]
    rows: Positions | None = None  # None: all
    kind: Kind = "texts"
    names: None = None
    origin: None = None
    encoding: None = None
    conditioning: None = None
    shape: tuple[int, ...] = (MAX_BYTES,)

    def __len__(self) -> int:
        return len(self.ends) - 1 if self.rows is None else len(self.rows)

    def __getitem__(self, index: Index) -> TextRows:
        return replace(self, rows=select_rows(self.rows, index, len(self)))

    def take(self, index: Tensor | slice) -> Tensor:
        rows = self._positions(index if isinstance(index, slice) else index.numpy())
        batch = np.zeros((len(rows), MAX_BYTES), np.uint8)
        for line, row in zip(batch, rows.tolist(), strict=True):
            text = self._text(row)
            line[: len(text)] = text
        return torch.from_numpy(batch)

    def _text(self, row: int) -> npt.NDArray[np.uint8]:
        """Return the first `MAX_BYTES` bytes, cut between two characters."""
        text = self.content[self.ends[row] : self.ends[row + 1]]
        end = MAX_BYTES
        while end < len(text) and text[end] & 0xC0 == 0x80:  # in the middle of a character
            end -= 1
        return text[:end]

    def _positions(self, index: Index) -> npt.NDArray[Any]:
        return (np.arange(len(self.ends) - 1) if self.rows is None else self.rows)[index]

    @property
    def statistics(self) -> Statistics:
        """Identity: bytes are not standardized."""
        return identity_statistics(MAX_BYTES)

    def digest(self) -> str:
        sha = hashlib.sha256(f"texts {len(self)}".encode())
        for row in self._positions(slice(None)).tolist():
            text = self.content[self.ends[row] : self.ends[row + 1]]
            sha.update(f"\n{len(text)} ".encode() + text.tobytes())
        return sha.hexdigest()


def texts(content: Sequence[str], where: str = "X") -> TextRows:
    """Wrap texts; refuse anything else, blank texts and texts with a NUL."""
    not_texts = [i for i, text in enumerate(content) if not isinstance(text, str)]
    if not_texts:
        places = (f"item {i}: {content[i]!r}" for i in not_texts)
        raise DataError(f"{where}: not texts: {len(not_texts)} of {len(content)}" + listing(places, len(not_texts)))
    bad = [i for i, text in enumerate(content) if not text.strip() or "\0" in text]
    if bad:
        places = (f"item {i}: {content[i][:40]!r}" for i in bad)
        raise DataError(
            f"{where}: texts that are blank or hold a NUL: {len(bad)}" + listing(places, len(bad)) + "\nLeave them out."
        )
    encoded = _encode(content, where)
    return TextRows(np.frombuffer(b"".join(encoded), np.uint8), _ends(list(map(len, encoded))))


def spool_texts(blocks: Iterable[Sequence[str]], where: str = "X") -> TextRows:
    """Write texts to a temporary file, one block in memory at a time. The caller has checked that none is blank."""
    lengths: list[int] = []
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the last view)
        for block in blocks:
            encoded = _encode(block, where)
            file.write(b"".join(encoded))
            lengths += map(len, encoded)
        file.flush()
    except OSError as error:
        raise DataError(
            f"{where}: the texts cannot be stored in {tempfile.gettempdir()} ({error.strerror or error}). "
            "Set TMPDIR to a folder with enough space."
        ) from error
    ends = _ends(lengths)
    return TextRows(Spool(file, int(ends[-1])), ends)


def _encode(content: Sequence[str], where: str) -> list[bytes]:
    try:
        return [text.encode() for text in content]
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: a text is not valid Unicode ({error}).") from error


def _ends(lengths: list[int]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *lengths], dtype=np.int64)


def decode_texts(x: Tensor) -> list[str]:
    """Return the texts of a batch [B, MAX_BYTES]."""
    return [bytes(line).rstrip(b"\0").decode() for line in x.to(torch.uint8).cpu().numpy()]
