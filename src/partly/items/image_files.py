"""Image files of any size, decoded on demand or ahead of use in worker processes.

All images come at one size, uint8 [3, size, size]: the short side is scaled to it and the rest is cropped. With
augmentation and a draw, `images.augmentation` chooses the crop.
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
from partly.images.decoder_pool import get_pool
from partly.images.scan import scan_images
from partly.images.worker import ImageLocation, Request
from partly.items.contract import Index, Kind, Positions, Statistics, select_rows

DEFAULT_SIZE = 128  # pixels, if neither the user nor a backbone chooses
CHUNK_IMAGES = 16  # per request to a worker
PREFETCH_IMAGES = 64  # per worker
CHANNELS = 3


class ImageSource:
    """Locations and names of images, and the results of inspecting them. All views share it: each image is inspected
    once."""

    def __init__(self, places: Sequence[ImageLocation], names: Sequence[str], where: str) -> None:
        self.places, self.names, self.where = tuple(places), tuple(names), where
        self._infos: dict[int, Any] = {}

    def inspect(self, rows: npt.NDArray[Any], progress: bool = True) -> list[Any]:
        """Inspect the images at these rows."""
        new = [row for row in rows.tolist() if row not in self._infos]
        self._infos |= zip(new, scan_images([self.places[row] for row in new], self.where, progress), strict=True)
        return [self._infos[row] for row in rows.tolist()]


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """All or some images of a source."""

    source: ImageSource
    rows: Positions | None = None  # None: all
    size: int | None = None  # None: not chosen yet
    augmentation: Augmentation | None = None
    kind: Kind = "pictures"
    names: None = None
    origin: None = None
    encoding: None = None
    conditioning: None = None

    def __len__(self) -> int:
        return len(self.source.places) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        return (CHANNELS, self.size or DEFAULT_SIZE, self.size or DEFAULT_SIZE)

    def __getitem__(self, index: Index) -> ImageFiles:
        return replace(self, rows=select_rows(self.rows, index, len(self)))

    def resize(self, size: int) -> ImageFiles:
        """Return the images at this size."""
        within(16, 4096, size=size)
        return replace(self, size=size)

    def augment(self, augmentation: Augmentation | None) -> ImageFiles:
        """Return the images with random augmentation wherever there is a draw; None turns it off."""
        return replace(self, augmentation=augmentation)

    # ---------------------------------------------------------------- pixels

    def take(self, index: Tensor | slice) -> Tensor:
        return next(self.stream([index]))

    def stream(self, parts: Iterable[Tensor | slice], draw: Draw | None = None) -> Iterator[Tensor]:
        """Yield a batch for each part, decoded ahead in worker processes. Their number does not change the result."""
        batches = [self._positions(part if isinstance(part, slice) else part.numpy()) for part in parts]
        chunks = [[rows[i : i + CHUNK_IMAGES] for i in range(0, len(rows), CHUNK_IMAGES)] for rows in batches]
        requests = (self._request(rows, draw) for rows in chain.from_iterable(chunks))
        pool = get_pool()
        answers = pool.map_ordered(requests, PREFETCH_IMAGES // CHUNK_IMAGES * max(1, pool.count))
        side = self.shape[1]
        for rows, row_chunks in zip(batches, chunks, strict=True):
            batch = np.empty((len(rows), side, side, CHANNELS), np.uint8)
            for k, chunk in enumerate(row_chunks):
                batch[k * CHUNK_IMAGES : k * CHUNK_IMAGES + len(chunk)] = self._pixels(*next(answers).result())
            yield torch.from_numpy(batch).permute(0, 3, 1, 2)

    def whole(self, item: int, max_side: int) -> npt.NDArray[np.uint8]:
        """Return one whole image for display, [H, W, 3], with no side longer than `max_side`."""
        place = self.source.places[int(self._positions(np.array([item]))[0])]
        answer, pixels = get_pool().submit({"do": "whole", "size": max_side, "places": [place]}).result()
        self._refuse_unreadable(answer)
        return np.frombuffer(pixels, np.uint8).reshape(answer["shape"])

    def _request(self, rows: npt.NDArray[Any], draw: Draw | None) -> Request:
        request: Request = {"do": "render", "size": self.shape[1], "draw": None}
        request["places"] = [self.source.places[row] for row in rows]
        if draw is not None and self.augmentation is not None:
            request |= {"draw": (draw.seed, draw.epoch), "augmentation": asdict(self.augmentation)}
            request["names"] = [self.source.names[row] for row in rows]
        return request

    def _pixels(self, answer: dict[str, Any], pixels: bytes) -> npt.NDArray[np.uint8]:
        self._refuse_unreadable(answer)
        return np.frombuffer(pixels, np.uint8).reshape(-1, self.shape[1], self.shape[1], CHANNELS)

    @staticmethod
    def _refuse_unreadable(answer: dict[str, Any]) -> None:
        if "bad" in answer:
            path, reason = answer["bad"]
            raise DataError(
                f"{path}: {reason}. `partly.read` finds all such files in advance; skip_bad=True skips them."
            )

    def _positions(self, index: Index) -> npt.NDArray[Any]:
        rows = np.arange(len(self.source.places)) if self.rows is None else self.rows
        return rows[index]

    # ---------------------------------------------------------------- inspection of all images

    def unreadable(self) -> dict[int, str]:
        """Return the images that cannot be decoded: position -> file and reason."""
        rows = self._positions(slice(None))
        infos = zip(rows.tolist(), self.source.inspect(rows), strict=True)
        return {i: f"{self.source.names[row]}: {info.reason}" for i, (row, info) in enumerate(infos) if info.reason}

    @cached_property
    def statistics(self) -> Statistics:
        """Mean and scale of the colors; every image has the same weight, whatever its size."""
        infos = self.source.inspect(self._positions(slice(None)))
        means, squares = (np.array([getattr(info, name) for info in infos]) for name in ("mean", "square"))
        mean, square = means.mean(axis=0), squares.mean(axis=0)
        scale = np.sqrt(np.maximum(square - mean**2, 0))
        return Statistics(torch.from_numpy(mean), torch.from_numpy(scale))

    def digest(self) -> str:
        """Return the SHA-256 of names and contents; the size does not matter."""
        rows, sha = self._positions(slice(None)), hashlib.sha256(f"pictures {len(self)}".encode())
        for row, info in zip(rows.tolist(), self.source.inspect(rows), strict=True):
            sha.update(f"\n{self.source.names[row]!r} {info.sha256}".encode())
        return sha.hexdigest()
