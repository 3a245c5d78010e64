"""Render an item for annotators: an image, a text, or a row of features.

Items are addressed by number, never by path. Images are decoded by our own reader and encoded again, so no other file
can be served as one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from PIL import Image

from partly.errors import DataError, listing
from partly.items import ImageFiles, Items, decode_texts

MAX_SIDE_PIXELS = 640
MAX_ZOOM_SIDE_PIXELS = 2048
MAX_LOSSLESS_SIDE_PIXELS = 64  # smaller images are sent as PNG, since every pixel counts
MAX_FEATURES_SHOWN = 12  # the least usual ones
MAX_TEXT_CHARACTERS = 4000
CACHED_IMAGES = 256


@dataclass(frozen=True, eq=False)
class ItemRenderer:
    """Renders these items. `rows`: the row of each item of the project, if `items` is another dataset (`--show`)."""

    items: Items
    rows: tuple[int, ...] | None = None
    _cached: Callable[[int, int], tuple[bytes, str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cached", lru_cache(CACHED_IMAGES)(self._encode))

    def describe(self, item: int) -> dict[str, Any]:
        """Return plain values for the page; an image is given by its URL."""
        if self.items.kind == "pictures":
            return {"kind": "picture", "source": f"/picture/{item}"}
        content = self._take(item)
        if self.items.kind == "texts":
            return {"kind": "text", "text": decode_texts(content)[0][:MAX_TEXT_CHARACTERS]}
        return {"kind": "row", "numbers": self._least_usual(content[0].double())}

    def _least_usual(self, values: torch.Tensor) -> list[list[str]]:
        """Return name and value of the features that are farthest from their mean, in column order."""
        usual = self.items.statistics
        distance = ((values - usual.mean) / torch.where(usual.scale > 0, usual.scale, 1.0)).abs()
        columns = distance.argsort(descending=True, stable=True)[:MAX_FEATURES_SHOWN].sort().values.tolist()
        names = self.items.names
        return [[names[j] if names else f"feature {j}", f"{float(values[j]):.4g}"] for j in columns]

    def image(self, item: int, large: bool = False) -> tuple[bytes, str]:
        """Return an encoded image and its media type. Large ones are not cached."""
        return self._encode(item, MAX_ZOOM_SIDE_PIXELS) if large else self._cached(item, MAX_SIDE_PIXELS)

    def _encode(self, item: int, max_side: int) -> tuple[bytes, str]:
        if self.items.kind != "pictures":
            raise DataError("These items are not images.")
        if isinstance(self.items, ImageFiles):
            pixels = self.items.whole(self._row(item), max_side)
        else:
            pixels = self._take(item)[0].to(torch.uint8).permute(1, 2, 0).numpy()
        file = io.BytesIO()
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        if max(image.size) <= MAX_LOSSLESS_SIDE_PIXELS:
            image.save(file, "PNG")
            return file.getvalue(), "image/png"
        image.save(file, "JPEG", quality=88)
        return file.getvalue(), "image/jpeg"

    def _take(self, item: int) -> Any:
        return self.items[np.array([self._row(item)])].take(slice(None))

    def _row(self, item: int) -> int:
        return item if self.rows is None else self.rows[item]


def renderer_by_id(shown: Items, shown_ids: Sequence[str], ids: Sequence[str], source: str) -> ItemRenderer:
    """Render items from another dataset with the same ids, such as images of items that are trained on as features."""
    rows = {name: row for row, name in enumerate(shown_ids)}
    missing = [name for name in ids if name not in rows]
    if missing:
        raise DataError(
            f"--show {source}: {len(missing)} of {len(ids)} items are missing"
            + listing(map(repr, missing), len(missing))
            + f"\nIts ids look like {shown_ids[0] if len(shown_ids) else 'none'!r}."
        )
    return ItemRenderer(shown, tuple(rows[name] for name in ids))
