"""Pictures and what pretends to be some, made here so that nobody's files are needed."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def noise(width: int = 40, height: int = 30, seed: int = 0, bands: int = 3) -> Image.Image:
    """No two places alike; smooth enough for a JPEG to keep most of it."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 256, (-(-height // 8), -(-width // 8), bands)).astype(np.uint8)
    image = Image.fromarray(small if bands > 1 else small[..., 0])
    return image.resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, form: str = "PNG", **how: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **how)
    return file.getvalue()


def turned(image: Image.Image, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(image, exif=exif)


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_bomb(width: int, height: int) -> bytes:
    """A few bytes that declare as many pixels as you like, and hold the first few rows of them."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(100_000))) + chunk(b"IEND", b"")


def jpeg_bomb() -> bytes:
    content = bytearray(encoded(noise(), "JPEG"))
    at = content.index(b"\xff\xc0") + 5  # height and width in the start of the frame
    content[at : at + 4] = struct.pack(">HH", 65500, 65500)
    return bytes(content)


def gif_bomb() -> bytes:
    content = bytearray(encoded(noise(), "GIF"))
    content[6:10] = struct.pack("<HH", 65500, 65500)
    return bytes(content)


def wordy() -> bytes:
    """A sound picture with a comment of five kilobytes that are five megabytes when they are unpacked."""
    content = encoded(noise())
    at = content.index(b"IDAT") - 4
    return content[:at] + chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(5_000_000), 9)) + content[at:]


def animated() -> bytes:
    frames = [Image.new("RGB", (20, 20), colour) for colour in ("red", "green", "blue")]
    return encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])


HOSTILE = {
    "bomb.png": png_bomb(60_000, 60_000),
    "large.png": png_bomb(7_000, 7_000),
    "bomb.jpg": jpeg_bomb(),
    "bomb.gif": gif_bomb(),
    "words.png": wordy(),
    "cut.jpg": encoded(noise(200, 150), "JPEG")[:-600],
    "cut.png": encoded(noise(200, 150))[:-600],
    "text.jpg": b"this is no picture at all\n",
    "empty.jpg": b"",
    "zeros.png": bytes(1000),
    "fractions.tif": encoded(Image.fromarray(np.ones((8, 8), np.float32)), "TIFF"),
    "line.png": encoded(Image.new("RGB", (50, 1))),
    "script.jpg": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n",
}
SOUND = {
    "cmyk.jpg": encoded(noise().convert("CMYK"), "JPEG"),
    "deep.png": encoded(Image.fromarray(np.arange(1200, dtype=np.uint16).reshape(30, 40) * 50)),
    "palette.png": encoded(noise().quantize(16)),
    "moving.gif": animated(),
    "turned.png": turned(noise(), 6),
    "grey.jpg": encoded(noise(bands=1), "JPEG"),
    "glass.png": encoded(noise(bands=4)),
    "bits.png": encoded(noise(bands=1).convert("1")),
    "other.webp": encoded(noise(), "WEBP"),
    "misnamed.gif": encoded(noise(), "JPEG"),
}


def folder_of(path: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


def some_pictures(path: Path, count: int = 6) -> Path:
    """Pictures of different sizes and forms, p0.png, p1.jpg, ..."""
    images = [noise(40 + 7 * i, 50 - 3 * (i % 9), i) for i in range(count)]
    forms = [("png", "PNG"), ("jpg", "JPEG")] * count
    return folder_of(path, {f"p{i}.{forms[i][0]}": encoded(image, forms[i][1]) for i, image in enumerate(images)})
