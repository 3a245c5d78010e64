"""What people see of an item: a picture, a text or the numbers of a row. Items are addressed by their number, never by
a path; a picture is decoded by the project's own reader and encoded anew, so that nothing else is served as one."""

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

LONGEST = 640  # pixels of a side
LARGE = 2048  # the same, to zoom into
TINY = 64  # up to here every pixel counts
MOST_NUMBERS = 12  # of a row of features: those that are farthest from what is usual
LETTERS = 4000
KEPT = 256  # pictures that stay in memory


@dataclass(frozen=True, eq=False)
class Seen:
    """Of these items. rows: where the item of a number stands among them, where they are others than those that are
    learned from."""

    items: Items
    rows: tuple[int, ...] | None = None
    _kept: Callable[[int, int], tuple[bytes, str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kept", lru_cache(KEPT)(self._encoded))

    def of(self, item: int) -> dict[str, Any]:
        """As plain values; what is text stays text."""
        at = self._at(item)
        if self.items.kind == "pictures":
            return {"kind": "picture", "source": f"/picture/{item}"}
        one = self.items[np.array([at])].take(slice(None))
        if self.items.kind == "texts":
            return {"kind": "text", "text": decode_texts(one)[0][:LETTERS]}
        return {"kind": "row", "numbers": self._numbers(one[0].double())}

    def _numbers(self, values: torch.Tensor) -> list[list[str]]:
        """Those that are least usual, in the order in which they stand."""
        usual = self.items.statistics
        far = ((values - usual.mean) / torch.where(usual.scale > 0, usual.scale, 1.0)).abs()
        shown = far.argsort(descending=True, stable=True)[:MOST_NUMBERS].sort().values.tolist()
        names = self.items.names
        return [[names[j] if names else f"feature {j}", f"{float(values[j]):.4g}"] for j in shown]

    def picture(self, item: int, large: bool = False) -> tuple[bytes, str]:
        """The picture of an item, encoded anew, and its type. Large ones are not kept in memory."""
        return self._encoded(item, LARGE) if large else self._kept(item, LONGEST)

    def _encoded(self, item: int, longest: int) -> tuple[bytes, str]:
        if self.items.kind != "pictures":
            raise DataError("These items are no pictures.")
        pixels = self._pixels(self._at(item), longest)
        file = io.BytesIO()
        image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        if max(image.size) <= TINY:
            image.save(file, "PNG")
            return file.getvalue(), "image/png"
        image.save(file, "JPEG", quality=88)
        return file.getvalue(), "image/jpeg"

    def _pixels(self, at: int, longest: int = LONGEST) -> np.ndarray[Any, Any]:
        if isinstance(self.items, ImageFiles):
            return self.items.whole(at, longest)
        one = self.items[np.array([at])].take(slice(None))[0]
        return one.to(torch.uint8).permute(1, 2, 0).numpy()

    def _at(self, item: int) -> int:
        return item if self.rows is None else self.rows[item]


def shown_by(shown: Items, ids: Sequence[str], there: Sequence[str], where: str) -> Seen:
    """What `shown` has of the items with these ids: pictures of items that are learned from as features, say."""
    at = {name: row for row, name in enumerate(there)}
    lost = [name for name in ids if name not in at]
    if lost:
        raise DataError(
            f"--show {where}: nothing to see of {len(lost)} of {len(ids)} items"
            + listing(map(repr, lost), len(lost))
            + f"\nIts ids are like {there[0] if len(there) else 'none'!r}."
        )
    return Seen(shown, tuple(at[name] for name in ids))
