"""Texts as items: a batch of them is their UTF-8 bytes, [B, LENGTH] of uint8, zeros at the end. What they are split
into (words, pieces of words) is the business of the backbone that reads them, and `texts_of` gives it the text back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.errors import DataError, listing
from partly.items.contract import Index, Kind, Positions, Statistics, as_they_are, narrowed

LENGTH = 4096  # bytes of a text that are read; one size for all, so that a model takes any text


@dataclass(frozen=True, eq=False)
class TextRows:
    """Texts, all or some, one after the other in memory."""

    content: npt.NDArray[np.uint8]  # all texts
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
    try:
        encoded = [word.encode() for word in words]
    except UnicodeEncodeError as error:
        raise DataError(f"{where}: a text is not valid Unicode ({error}).") from error
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    return TextRows(np.frombuffer(b"".join(encoded), np.uint8), ends)


def texts_of(x: Tensor) -> list[str]:
    """The texts in a batch, [B, LENGTH]: what `take` gave, back."""
    return [bytes(line).rstrip(b"\0").decode() for line in x.to(torch.uint8).cpu().numpy()]
