"""Inspect every image before training: which are unreadable and why, their colors, and a digest of each.

Results are cached by size and modification time of the file, so that the next command need not inspect it again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from PIL import __version__ as pillow

from partly.atomic_io import sha256, write_file
from partly.errors import DataError
from partly.images.decoder_pool import WorkerDied, get_pool
from partly.images.progress import track_progress
from partly.images.reading import ImageInfo
from partly.images.worker import ImageLocation

CHUNK_IMAGES = 16  # per request
RECENT_NS = 2 * 10**9  # a file this new may still change without a new modification time
CACHE_FORMAT = f"2, Pillow {pillow}"  # another decoder may find other images unreadable
Stamp = tuple[int, int]  # size and modification time of a file


def cache_folder() -> Path:
    """Return the folder for files that can be recomputed: $PARTLY_CACHE, or the cache folder of the user."""
    chosen = os.environ.get("PARTLY_CACHE")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partly"


def scan_images(places: Sequence[ImageLocation], where: str, progress: bool = True) -> list[ImageInfo]:
    """Inspect images; `where` is their source, which names the cache file."""
    cache_file = cache_folder() / "surveys" / f"{sha256(os.path.abspath(where).encode())[:32]}.json"
    cache, stamps = _read_cache(cache_file), [_stamp(place) for place in places]
    infos = [_look_up(cache, place, stamp) for place, stamp in zip(places, stamps, strict=True)]
    todo = [i for i, info in enumerate(infos) if info is None]
    new: dict[str, Any] = {}
    recent = time.time_ns() - RECENT_NS
    inspected = track_progress(_inspect([places[i] for i in todo]), len(todo), where, progress)
    try:
        for i, info in zip(todo, inspected, strict=True):
            infos[i], stamp = info, stamps[i]
            if stamp is not None and stamp[1] < recent:
                new[_key(places[i])] = [*stamp, asdict(info)]
    finally:
        if new:
            _write_cache(cache_file, cache | new)
    return [info for info in infos if info is not None]


def _inspect(places: Sequence[ImageLocation]) -> Iterator[ImageInfo]:
    chunks = [places[i : i + CHUNK_IMAGES] for i in range(0, len(places), CHUNK_IMAGES)]
    requests = ({"do": "inspect", "places": chunk} for chunk in chunks)
    pool = get_pool()
    answers = pool.map_ordered(requests, 4 * max(1, pool.count))
    for chunk, answer in zip(chunks, answers, strict=True):
        try:
            yield from (ImageInfo(**info) for info in answer.result()[0]["infos"])
        except WorkerDied:
            yield from map(_inspect_alone, chunk)


def _inspect_alone(place: ImageLocation) -> ImageInfo:
    """Inspect one image of a chunk that crashed a worker, to find the image that did it."""
    try:
        return ImageInfo(**get_pool().submit({"do": "inspect", "places": [place]}).result()[0]["infos"][0])
    except WorkerDied as error:
        return ImageInfo("", f"the decoder crashed. {error}")


# ---------------------------------------------------------------- cache


def _stamp(place: ImageLocation) -> Stamp | None:
    with suppress(OSError, ValueError):
        status = os.stat(place.path)
        return status.st_size, status.st_mtime_ns
    return None


def _key(place: ImageLocation) -> str:
    return json.dumps(place)


def _look_up(cache: dict[str, Any], place: ImageLocation, stamp: Stamp | None) -> ImageInfo | None:
    entry = cache.get(_key(place))
    return ImageInfo(**entry[2]) if entry is not None and stamp is not None and tuple(entry[:2]) == stamp else None


def _read_cache(path: Path) -> dict[str, Any]:
    """Return the cached results; nothing if the file is missing or damaged."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        content = json.loads(path.read_text("utf-8"))
        if content["format"] == CACHE_FORMAT and content["sha256"] == _checksum(content["images"]):
            images: dict[str, Any] = content["images"]
            return images
    return {}


def _write_cache(path: Path, images: dict[str, Any]) -> None:
    with suppress(OSError, DataError):  # the cache is optional
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"format": CACHE_FORMAT, "sha256": _checksum(images), "images": images}
        write_file(path, json.dumps(content).encode())


def _checksum(images: dict[str, Any]) -> str:
    return sha256(json.dumps(images).encode())
