"""Bytes that are said to be a picture: looked at with suspicion, and shown at one size.

What they are is told by their content, never by a name. The size that they declare is known before anything is decoded,
and what is too large is refused then. Only formats of pixels are tried: some that Pillow knows run programs.
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
from partly.images.augmentation import View, centre

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
MOST_PIXELS = 40_000_000
LEAST_SIDE = 2
ORIENTATION = 0x0112  # in EXIF
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
GREY = (0.299, 0.587, 0.114)  # how bright red, green and blue are
MIDDLE = 128  # grey
GLANCE = 64  # pixels: a JPEG is decoded at an eighth where that leaves so many, and no part of it is left out
GAP = 3.0  # how much larger than wanted a picture is left by the quick step that comes before the careful one

Pixels = npt.NDArray[np.uint8]
Viewer = Callable[[int, int], View]  # width, height -> what is shown


@dataclass(frozen=True)
class Look:
    """What one look at some bytes has found."""

    sha256: str
    reason: str = ""  # why they are no picture to learn from; '' where they are one
    mean: list[float] = field(default_factory=list)  # of each channel
    square: list[float] = field(default_factory=list)  # mean of squares


def looked(content: bytes) -> Look:
    """Whether these bytes are a picture, all of it: the whole is decoded, since many a truncated one opens well."""
    sha = hashlib.sha256(content).hexdigest()
    try:
        image = _decoded(_opened(content), GLANCE)
    except DataError as error:
        return Look(sha, str(error))
    counts = np.array(image.histogram(), np.float64).reshape(3, 256)
    values, pixels = np.arange(256), image.width * image.height
    return Look(sha, "", (counts @ values / pixels).tolist(), (counts @ values**2 / pixels).tolist())


def rendered(content: bytes, size: int, viewer: Viewer | None = None) -> Pixels:
    """The picture at one size, [size, size, 3]: what the viewer shows, else the centre."""
    image = _opened(content)
    turn = _turn(image)
    width, height = image.size if turn not in (5, 6, 7, 8) else image.size[::-1]
    view = View(centre(width, height)) if viewer is None else viewer(width, height)
    left, top, right, bottom = view.box
    image = _decoded(image, size * min(width, height) / min(right - left, bottom - top), turn)
    across, down = image.width / width, image.height / height
    box = (left * across, top * down, min(right * across, image.width), min(bottom * down, image.height))
    image = image.resize((size, size), Image.Resampling.BILINEAR, box, GAP)
    if view.mirrored:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    if view.light is not None:
        image = _lit(image, *view.light)
    return np.asarray(image)


def whole(content: bytes, longest: int) -> Pixels:
    """All of the picture, [H, W, 3], no side longer than that and none made longer: for people to look at."""
    image = _opened(content)
    image = _decoded(image, min(image.size) * min(1.0, longest / max(image.size)))
    image.thumbnail((longest, longest), Image.Resampling.BILINEAR)
    return np.asarray(image)


def _lit(image: Image.Image, brightness: float, contrast: float, saturation: float) -> Image.Image:
    """First brighter (x -> b x), then with more contrast (about a middle grey), then with more colour (about the grey
    of each pixel). All three are linear, so they are one matrix: rounded once, and three times as fast as one by
    one."""
    gain, shift = brightness * contrast, (1 - contrast) * MIDDLE
    rows = ((gain * (saturation * (i == j) + (1 - saturation) * GREY[j]) for j in range(3)) for i in range(3))
    return image.convert("RGB", tuple(number for row in rows for number in (*row, shift)))


def _opened(content: bytes) -> Image.Image:
    """A picture of which only the header has been read."""
    if not content:
        raise DataError("the file is empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large ones: refused below; of odd ones: decoding shows it
            image = Image.open(io.BytesIO(content), formats=FORMATS)
    except Image.DecompressionBombError:
        raise DataError(f"declares far more than the {MOST_PIXELS / 1e6:.0f} megapixels that are decoded") from None
    except UnidentifiedImageError:
        raise DataError(f"no picture ({_begins(content)}); there is: {', '.join(FORMATS)}") from None
    except Exception as error:  # a damaged header can fail in a dozen ways
        raise DataError(_told("cannot be opened", error)) from error
    if image.width * image.height > MOST_PIXELS:
        raise DataError(
            f"{image.width} x {image.height} pixels are more than the {MOST_PIXELS / 1e6:.0f} megapixels "
            "that are decoded"
        )
    if min(image.size) < LEAST_SIDE:
        raise DataError(f"{image.width} x {image.height} pixels show nothing")
    return image


def _decoded(image: Image.Image, short: float, turn: int | None = None) -> Image.Image:
    """All of it as RGB, turned as its camera was. A JPEG comes at a half, a quarter or an eighth, where its short side
    stays at least that: many times faster."""
    factor = max(1.0, min(image.size) / short)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image.draft(None, (math.ceil(image.width / factor), math.ceil(image.height / factor)))
            turn = _turn(image) if turn is None else turn
            image.load()
            image = _rgb(image)
            return image.transpose(TURNS[turn]) if turn in TURNS else image
    except DataError:
        raise
    except (Exception, MemoryError) as error:
        raise DataError(_told("cannot be decoded", error)) from error


def _rgb(image: Image.Image) -> Image.Image:
    """8 bits of red, green and blue. What is transparent lies on white; of 16 bits of grey the upper 8 are kept, where
    Pillow would cut off at 255."""
    if image.mode.startswith("I"):
        grey = np.asarray(image)
        if grey.min() < 0 or grey.max() > 0xFFFF:
            raise DataError(f"holds whole numbers from {grey.min()} to {grey.max()}; 8 or 16 bits are read")
        return Image.fromarray((grey >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise DataError("holds fractions; 8 or 16 bits are read")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")  # which would be a copy


def _turn(image: Image.Image) -> int:
    """How the camera was held; as it lies, where the EXIF cannot be read: that does not make it a bad picture."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            turn: Any = image.getexif().get(ORIENTATION, 1)
    except Exception:
        return 1
    return turn if isinstance(turn, int) else 1


def _begins(content: bytes) -> str:
    start = content[:16]
    return f"it is text, {start.decode()!r}..." if start.isascii() and b"\0" not in start else f"begins {start.hex()}"


def _told(what: str, error: BaseException) -> str:
    return f"{what} ({str(error) or type(error).__name__})"
