"""Pictures that lie in files, each of its own size: decoded when they are asked for, and ahead of that where it is
known what will be asked for.

They come at one size, [3, size, size] of uint8: the short side is brought to it and the rest cut off, or, where they
are augmented and there is a draw, what `pictures.augmentation` shows of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.clock import Draw
from partly.errors import DataError, within
from partly.images.augmentation import Augmentation
from partly.images.decoder_pool import crew
from partly.images.scan import survey
from partly.images.worker import Place, Request
from partly.items.contract import Index, Kind, Positions, Statistics, narrowed

SIZE = 128  # where neither a user nor a backbone says
CHUNK = 16  # pictures of one question to a worker
AHEAD = 64  # pictures asked for ahead, for each worker
CHANNELS = 3


class Source:
    """Where pictures lie, under which names, and what a look at them has found. All views of them share it, so that
    each picture is looked at once."""

    def __init__(self, places: Sequence[Place], names: Sequence[str], where: str) -> None:
        self.places, self.names, self.where = tuple(places), tuple(names), where
        self._looks: dict[int, Any] = {}

    def looks(self, rows: npt.NDArray[Any], progress: bool = True) -> list[Any]:
        """What is found of these."""
        new = [row for row in rows.tolist() if row not in self._looks]
        self._looks |= zip(new, survey([self.places[row] for row in new], self.where, progress), strict=True)
        return [self._looks[row] for row in rows.tolist()]


@dataclass(frozen=True, eq=False)
class PictureFiles:
    """Pictures of a source, all or some."""

    source: Source
    rows: Positions | None = None  # None: all
    size: int | None = None  # None: nobody has said
    augmentation: Augmentation | None = None
    kind: Kind = "pictures"
    names: None = None

    def __len__(self) -> int:
        return len(self.source.places) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (CHANNELS, self.size or SIZE, self.size or SIZE)

    def __getitem__(self, index: Index) -> PictureFiles:
        return replace(self, rows=narrowed(self.rows, index, len(self)))

    def sized(self, size: int) -> PictureFiles:
        """The same at this size."""
        within(16, 4096, size=size)
        return replace(self, size=size)

    def augmented(self, augmentation: Augmentation | None) -> PictureFiles:
        """The same, changed wherever there is a draw; None: never."""
        return replace(self, augmentation=augmentation)

    # ---------------------------------------------------------------- pixels

    def take(self, index: Tensor | slice) -> Tensor:
        return next(self.stream([index]))

    def stream(self, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
        """A batch for each part, decoded ahead in other processes. Neither their number nor the order of the parts
        changes a picture."""
        batches = [self._positions(part if isinstance(part, slice) else part.numpy()) for part in parts]
        chunks = [[rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)] for rows in batches]
        requests = (self._request(rows, draw) for rows in chain.from_iterable(chunks))
        everybody = crew()
        answers = everybody.in_order(requests, AHEAD // CHUNK * max(1, everybody.count))
        side = self.shape[1]
        for rows, its in zip(batches, chunks, strict=True):
            batch = np.empty((len(rows), side, side, CHANNELS), np.uint8)
            for k, chunk in enumerate(its):
                batch[k * CHUNK : k * CHUNK + len(chunk)] = self._pixels(*next(answers).result())
            yield torch.from_numpy(batch).permute(0, 3, 1, 2)

    def whole(self, item: int, longest: int) -> npt.NDArray[np.uint8]:
        """All of one picture in its own shape, [H, W, 3], no side longer than that: for people to look at."""
        place = self.source.places[int(self._positions(np.array([item]))[0])]
        told, pixels = crew().ask({"do": "whole", "size": longest, "places": [place]}).result()
        self._refuse_bad(told)
        return np.frombuffer(pixels, np.uint8).reshape(told["shape"])

    def _request(self, rows: npt.NDArray[Any], draw: Draw | None) -> Request:
        request: Request = {"do": "show", "size": self.shape[1], "draw": None}
        request["places"] = [self.source.places[row] for row in rows]
        if draw is not None and self.augmentation is not None:
            request |= {"draw": (draw.seed, draw.epoch), "augmentation": asdict(self.augmentation)}
            request["names"] = [self.source.names[row] for row in rows]
        return request

    def _pixels(self, told: dict[str, Any], pixels: bytes) -> npt.NDArray[np.uint8]:
        self._refuse_bad(told)
        return np.frombuffer(pixels, np.uint8).reshape(-1, self.shape[1], self.shape[1], CHANNELS)

    @staticmethod
    def _refuse_bad(told: dict[str, Any]) -> None:
        if "bad" in told:
            path, reason = told["bad"]
            raise DataError(
                f"{path}: {reason}. `partly.read` finds such files before, all of them; skip_bad=True leaves them out."
            )

    def _positions(self, index: Index) -> npt.NDArray[Any]:
        rows = np.arange(len(self.source.places)) if self.rows is None else self.rows
        return rows[index]

    # ---------------------------------------------------------------- one look at all of them

    def bad(self) -> dict[int, str]:
        """Which of these are no pictures to learn from: position -> file and reason."""
        rows = self._positions(slice(None))
        found = zip(rows.tolist(), self.source.looks(rows), strict=True)
        return {i: f"{self.source.names[row]}: {look.reason}" for i, (row, look) in enumerate(found) if look.reason}

    @cached_property
    def statistics(self) -> Statistics:
        """Of the colours of whole pictures, each of the same weight, whatever its size."""
        looks = self.source.looks(self._positions(slice(None)))
        means, squares = (np.array([getattr(look, what) for look in looks]) for what in ("mean", "square"))
        mean, square = means.mean(axis=0), squares.mean(axis=0)
        scale = np.sqrt(np.maximum(square - mean**2, 0))
        return Statistics(torch.from_numpy(mean), torch.from_numpy(scale))

    def digest(self) -> str:
        """Of names and contents, whatever the size at which they are shown."""
        rows, sha = self._positions(slice(None)), hashlib.sha256(f"pictures {len(self)}".encode())
        for row, look in zip(rows.tolist(), self.source.looks(rows), strict=True):
            sha.update(f"\n{self.source.names[row]!r} {look.sha256}".encode())
        return sha.hexdigest()
