"""Texts as items: a batch of them is their UTF-8 bytes, [B, LENGTH] of uint8, zeros at the end. What they are split
into (words, pieces of words) is the business of the backbone that reads them, and `texts_of` gives it the text back.
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
from partly.items.contract import Index, Kind, Positions, Statistics, as_they_are, narrowed

LENGTH = 4096  # bytes of a text that are read; one size for all, so that a model takes any text


class Spool:
    """Bytes in a file without a name, which goes when nobody holds it any more: texts of any number take no memory.
    Read, not mapped, so that what was read once is not counted as held."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self.size = file, size
        weakref.finalize(self, file.close)

    def __getitem__(self, part: slice) -> npt.NDArray[np.uint8]:
        return np.frombuffer(os.pread(self._file.fileno(), part.stop - part.start, part.start), np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process, as an array."""
        return np.array, (self[0 : self.size],)


@dataclass(frozen=True, eq=False)
class TextRows:
    """Texts, all or some, one after the other in memory or in a file."""

    content: npt.NDArray[np.uint8] | Spool  # all texts
    ends: npt.NDArray[np.int64]  # [N + 1]: text i is content[ends[i] : ends[i + 1]]
    rows: Positions | None = None  # None: all
    kind: Kind = "texts"
    names: None = None
    shape: tuple[int, ...] = (LENGTH,)

    def __len__(self) -> int:
        return len(self.ends) - 1 if self.rows is None else len(self.rows)

    def __getitem__(self, index: Index) -> TextRows:
        return replace(self, rows=narrowed(self.rows, index, len(self)))

    def take(self, index: Tensor | slice) -> Tensor:
        rows = self._positions(index if isinstance(index, slice) else index.numpy())
        batch = np.zeros((len(rows), LENGTH), np.uint8)
        for line, row in zip(batch, rows.tolist(), strict=True):
            text = self._text(row)
            line[: len(text)] = text
        return torch.from_numpy(batch)

    def _text(self, row: int) -> npt.NDArray[np.uint8]:
        """As much as is read of it, cut between two letters."""
        text = self.content[self.ends[row] : self.ends[row + 1]]
        end = LENGTH
        while end < len(text) and text[end] & 0xC0 == 0x80:  # in the middle of a letter
            end -= 1
        return text[:end]

    def _positions(self, index: Index) -> npt.NDArray[Any]:
        return (np.arange(len(self.ends) - 1) if self.rows is None else self.rows)[index]

    @property
    def statistics(self) -> Statistics:
        """None to speak of: bytes are no numbers, and are left as they are."""
        return as_they_are(LENGTH)

    def digest(self) -> str:
        sha = hashlib.sha256(f"texts {len(self)}".encode())
        for row in self._positions(slice(None)).tolist():
            text = self.content[self.ends[row] : self.ends[row + 1]]
            sha.update(f"\n{len(text)} ".encode() + text.tobytes())
        return sha.hexdigest()


def texts(words: Sequence[str], where: str = "X") -> TextRows:
    """Texts as items; what is none, or holds nothing, or a NUL, is refused."""
    none = [i for i, word in enumerate(words) if not isinstance(word, str)]
    if none:
        told = (f"item {i}: {words[i]!r}" for i in none)
        raise DataError(f"{where}: not texts: {len(none)} of {len(words)}" + listing(told, len(none)))
    bad = [i for i, word in enumerate(words) if not word.strip() or "\0" in word]
    if bad:
        told = (f"item {i}: {words[i][:40]!r}" for i in bad)
        raise DataError(
            f"{where}: texts that are blank or hold a NUL: {len(bad)}" + listing(told, len(bad)) + "\nLeave them out."
        )
    encoded = _encoded(words, where)
    return TextRows(np.frombuffer(b"".join(encoded), np.uint8), _ends(list(map(len, encoded))))


def spooled(blocks: Iterable[Sequence[str]], where: str = "X") -> TextRows:
    """Texts as items, of which no more than a block is held in memory; whether they hold anything, who gives them has
    seen to."""
    lengths: list[int] = []
    try:
        file = tempfile.TemporaryFile()  # noqa: SIM115, for as long as somebody wants the texts
        for words in blocks:
            encoded = _encoded(words, where)
            file.write(b"".join(encoded))
            lengths += map(len, encoded)
        file.flush()
    except OSError as error:
        raise DataError(
            f"{where}: the texts cannot be kept in {tempfile.gettempdir()} ({error.strerror or error}). "
            "Say in TMPDIR where there is room."
        ) from error
    ends = _ends(lengths)
    return TextRows(Spool(file, int(ends[-1])), ends)


def _encoded(words: Sequence[str], where: str) -> list[bytes]:
    try:
        return [word.encode() for word in words]
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: a text is not valid Unicode ({error}).") from error


def _ends(lengths: list[int]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *lengths], dtype=np.int64)


def texts_of(x: Tensor) -> list[str]:
    """The texts in a batch, [B, LENGTH]: what `take` gave, back."""
    return [bytes(line).rstrip(b"\0").decode() for line in x.to(torch.uint8).cpu().numpy()]
