"""What a reader sees of an item: a small picture, and where in it the evidence lies; or the beginning of a text."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from partly.items import Items, decode_texts, is_decoded
from partly.report.layout import uri
from partly.report.plots import plain

SIDE = 160  # pixels: larger pictures are made smaller
TINY = 64  # pixels: no side is longer; each pixel is shown as it is
QUALITY = 80  # of a JPEG
LETTERS = 280  # of a text
DIM = 0.5  # how bright a picture is where there is no evidence; it is grey there
Pixels = npt.NDArray[np.uint8]  # [H, W, 1 or 3]
Evidence = Callable[[Items, Sequence[int]], npt.NDArray[Any]]  # items, a label of each -> [B, h, w], above 0 for yes


@dataclass(frozen=True, eq=False)
class Sight:
    """One item. evidence: the same picture, grey and dim where nothing speaks for the label."""

    pixels: Pixels | None = None
    evidence: Pixels | None = None
    text: str = ""


def sights(items: Items, at: Sequence[int], labels: Sequence[int], evidence: Evidence | None = None) -> list[Sight]:
    """Of the items at these positions, and of no others: all others stay in their files. labels: one of each item, for
    which evidence is sought."""
    chosen = items[np.array(at, np.int64)]
    if items.kind == "texts":
        return [Sight(text=plain(text, LETTERS)) for text in decode_texts(chosen.take(slice(None)))]
    if items.kind != "pictures":
        return [Sight()] * len(at)
    maps = [None] * len(at) if evidence is None else evidence(chosen, labels)
    shown = chosen.resize(SIDE) if is_decoded(chosen) else chosen
    batch = shown.take(slice(None)).to(torch.uint8).permute(0, 2, 3, 1).numpy()
    pictures = [_smaller(pixels) for pixels in batch]
    return [Sight(one, None if m is None else lit(one, m)) for one, m in zip(pictures, maps, strict=True)]


def lit(pixels: Pixels, places: npt.NDArray[Any]) -> Pixels | None:
    """The picture in its colours where places [h, w] of it speak for a label as much as the strongest one does, half in
    colour where they do so by a quarter of that, and grey and dim where they do not; None where none does."""
    if not places.max() > 0:
        return None
    share = Image.fromarray(np.sqrt(np.maximum(places, 0) / places.max()).astype(np.float32))
    across = np.asarray(share.resize(pixels.shape[1::-1], Image.Resampling.BILINEAR))[:, :, None]
    grey = DIM * pixels.mean(axis=2, keepdims=True)
    mixed: Pixels = (across * pixels + (1 - across) * grey).round().clip(0, 255).astype(np.uint8)
    return mixed


def picture_uri(pixels: Pixels) -> str:
    """As part of a page: a JPEG of some kilobytes, or, where it is tiny, a PNG."""
    file = io.BytesIO()
    if is_tiny(pixels):
        _image(pixels).save(file, "PNG", optimize=True)
        return uri(file.getvalue(), "png")
    _image(pixels).save(file, "JPEG", quality=QUALITY, optimize=True)
    return uri(file.getvalue(), "jpeg")


def is_tiny(pixels: Pixels) -> bool:
    return bool(max(pixels.shape[:2]) <= TINY)


def _smaller(pixels: Pixels) -> Pixels:
    if max(pixels.shape[:2]) <= SIDE:
        return pixels
    image = _image(pixels)
    image.thumbnail((SIDE, SIDE))
    return np.asarray(image).reshape(*image.size[::-1], -1)


def _image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
