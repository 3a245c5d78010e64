"""Decode untrusted bytes as an image of one size.

The content decides the format, never the file name. Images that declare too many pixels are refused before decoding.
Only raster formats are tried, because some formats that Pillow supports run programs.
"""

from __future__ import annotations

import hashlib
import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from partly.errors import DataError
from partly.images.augmentation import View, center_crop

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
MAX_PIXELS = 40_000_000
MIN_SIDE = 2
ORIENTATION = 0x0112  # in EXIF
TRANSPOSE_OF = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
LUMA_WEIGHTS = (0.299, 0.587, 0.114)  # weights of red, green and blue
MIDDLE_GRAY = 128
INSPECT_SIDE = 64  # pixels: a JPEG is inspected as a whole, but at a reduced size (down to an eighth)
REDUCING_GAP = 3.0  # see Pillow's Image.resize

Pixels = npt.NDArray[np.uint8]
Viewer = Callable[[int, int], View]  # width, height -> view


@dataclass(frozen=True)
class ImageInfo:
    """Result of inspecting an image."""

    sha256: str
    reason: str = ""  # why it cannot be used; '' if it can
    mean: list[float] = field(default_factory=list)  # of each channel
    square: list[float] = field(default_factory=list)  # mean of squares


def inspect_image(content: bytes) -> ImageInfo:
    """Inspect bytes. The whole image is decoded, because truncated ones often open without an error."""
    sha = hashlib.sha256(content).hexdigest()
    try:
        image = _decode(_open(content), INSPECT_SIDE)
    except DataError as error:
        return ImageInfo(sha, str(error))
    counts = np.array(image.histogram(), np.float64).reshape(3, 256)
    values, pixels = np.arange(256), image.width * image.height
    return ImageInfo(sha, "", (counts @ values / pixels).tolist(), (counts @ values**2 / pixels).tolist())


def render_image(content: bytes, size: int, viewer: Viewer | None = None) -> Pixels:
    """Render an image as [size, size, 3]: the crop of the viewer, or the center."""
    image = _open(content)
    turn = _orientation(image)
    width, height = image.size if turn not in (5, 6, 7, 8) else image.size[::-1]
    view = View(center_crop(width, height)) if viewer is None else viewer(width, height)
    left, top, right, bottom = view.box
    image = _decode(image, size * min(width, height) / min(right - left, bottom - top), turn)
    scale_x, scale_y = image.width / width, image.height / height
    box = (left * scale_x, top * scale_y, min(right * scale_x, image.width), min(bottom * scale_y, image.height))
    image = image.resize((size, size), Image.Resampling.BILINEAR, box, REDUCING_GAP)
    if view.mirrored:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if view.light is not None:
        image = _adjust_colors(image, *view.light)
    return np.asarray(image)


def render_whole(content: bytes, max_side: int) -> Pixels:
    """Render the whole image for display, [H, W, 3], scaled down to `max_side` if it is larger."""
    image = _open(content)
    image = _decode(image, min(image.size) * min(1.0, max_side / max(image.size)))
    image.thumbnail((max_side, max_side), Image.Resampling.BILINEAR)
    return np.asarray(image)


def _adjust_colors(image: Image.Image, brightness: float, contrast: float, saturation: float) -> Image.Image:
    """Scale brightness, then contrast about middle gray, then saturation about the gray of each pixel.

    All three are linear, so they are one matrix: rounded once, and three times as fast.
    """
    gain, shift = brightness * contrast, (1 - contrast) * MIDDLE_GRAY
    rows = ((gain * (saturation * (i == j) + (1 - saturation) * LUMA_WEIGHTS[j]) for j in range(3)) for i in range(3))
    return image.convert("RGB", tuple(number for row in rows for number in (*row, shift)))


def _open(content: bytes) -> Image.Image:
    """Open an image; only its header is read."""
    if not content:
        raise DataError("the file is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # large images are refused below, damaged ones when decoding
            image = Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError:
        raise DataError(f"declares far more pixels than the limit of {MAX_PIXELS / 1e6:.0f} megapixels") from None
    except UnidentifiedImageError:
        raise DataError(f"not an image ({_describe_start(content)}); supported: {', '.join(FORMATS)}") from None
    except Exception as error:  # a damaged header can fail in many ways
        raise DataError(_describe_error("cannot be opened", error)) from error
    if image.width * image.height > MAX_PIXELS:
        raise DataError(
            f"{image.width} x {image.height} pixels are more than the limit of {MAX_PIXELS / 1e6:.0f} megapixels"
        )
    if min(image.size) < MIN_SIDE:
        raise DataError(f"{image.width} x {image.height} pixels are too few")
    return image


def _decode(image: Image.Image, min_side: float, turn: int | None = None) -> Image.Image:
    """Decode as RGB and apply the EXIF orientation.

    A JPEG is decoded at a half, a quarter or an eighth of its size while its short side stays at least `min_side`,
    which is many times faster.
    """
    factor = max(1.0, min(image.size) / min_side)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image.draft(None, (math.ceil(image.width / factor), math.ceil(image.height / factor)))
            turn = _orientation(image) if turn is None else turn
            image.load()
            image = _to_rgb(image)
            return image.transpose(TRANSPOSE_OF[turn]) if turn in TRANSPOSE_OF else image
    except DataError:
        raise
    except (Exception, MemoryError) as error:
        raise DataError(_describe_error("cannot be decoded", error)) from error


def _to_rgb(image: Image.Image) -> Image.Image:
    """Convert to 8-bit RGB: transparency on white; of 16-bit gray the upper 8 bits, where Pillow would clip at 255."""
    if image.mode.startswith("I"):
        gray = np.asarray(image)
        if gray.min() < 0 or gray.max() > 0xFFFF:
            raise DataError(f"has values from {gray.min()} to {gray.max()}; only 8 and 16 bits are supported")
        return Image.fromarray((gray >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise DataError("has floating-point values; only 8 and 16 bits are supported")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")  # converting would copy


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation; 1 (upright) if it cannot be read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            turn: Any = image.getexif().get(ORIENTATION, 1)
    except Exception:
        return 1
    return turn if isinstance(turn, int) else 1


def _describe_start(content: bytes) -> str:
    start = content[:16]
    return f"it is text, {start.decode()!r}..." if start.isascii() and b"\0" not in start else f"begins {start.hex()}"


def _describe_error(what: str, error: BaseException) -> str:
    return f"{what} ({str(error) or type(error).__name__})"
