"""A worker process that inspects and decodes images: one JSON request per line of input, one answer per line of output.

It is a program of its own instead of a `multiprocessing` worker: the caller's main module is not imported again, no
process with threads is forked, and torch is not loaded. Pixels are returned in shared memory.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from partly.clock import Draw
from partly.errors import DataError
from partly.images.augmentation import Augmentation
from partly.images.reading import ImageInfo, inspect_image, render_image, render_whole
from partly.images.shared import Shared

MAX_MEMORY_BYTES = 4 << 30  # of address space, so that a malicious image cannot exhaust the machine
MAX_FILE_BYTES = 1 << 28
Request = dict[str, Any]
Answer = tuple[dict[str, Any], bytes]
Allocate = Callable[[int], bytearray | memoryview]  # number of bytes -> buffer


class ImageLocation(NamedTuple):
    """Location of the bytes of an image: a file, or a range in one."""

    path: str
    offset: int = 0
    length: int | None = None  # None: to the end


def answer_request(request: Request) -> Answer:
    """Return the answer and the pixels; a function of the request and of the files."""
    answer, pixels = answer_into(request, bytearray)
    return answer, bytes(pixels)


def answer_into(request: Request, allocate: Allocate) -> tuple[dict[str, Any], bytearray | memoryview]:
    """Answer a request, with the pixels in an allocated buffer."""
    places = [ImageLocation(*place) for place in request["places"]]
    if request["do"] == "inspect":
        return {"infos": [asdict(_inspect(place)) for place in places]}, allocate(0)
    if request["do"] == "whole":
        return _render_whole(places[0], request["size"], allocate)
    return _render(request, places, allocate)


def _inspect(place: ImageLocation) -> ImageInfo:
    try:
        return inspect_image(read_bytes(place))
    except DataError as error:
        return ImageInfo("", str(error))


def _render(
    request: Request, places: list[ImageLocation], allocate: Allocate
) -> tuple[dict[str, Any], bytearray | memoryview]:
    """Render images at the requested size, augmented by the draw; report the first unreadable one."""
    viewers: list[Any] = [None] * len(places)
    if request["draw"] is not None:
        view, draw = Augmentation(**request["augmentation"]).view, Draw(*request["draw"])
        viewers = [partial(view, draw=draw, item=name) for name in request["names"]]
    size = request["size"]
    pixels = allocate(len(places) * size * size * 3)
    images = np.frombuffer(pixels, np.uint8).reshape(len(places), size, size, 3)
    for place, viewer, image in zip(places, viewers, images, strict=True):
        try:
            image[:] = render_image(read_bytes(place), size, viewer)
        except DataError as error:
            return {"bad": [place.path, str(error)]}, allocate(0)
    return {}, pixels


def _render_whole(
    place: ImageLocation, max_side: int, allocate: Allocate
) -> tuple[dict[str, Any], bytearray | memoryview]:
    """Render one image at its own aspect ratio."""
    try:
        image = render_whole(read_bytes(place), max_side)
    except DataError as error:
        return {"bad": [place.path, str(error)]}, allocate(0)
    pixels = allocate(image.nbytes)
    np.frombuffer(pixels, np.uint8).reshape(image.shape)[:] = image
    return {"shape": image.shape}, pixels


def read_bytes(place: ImageLocation) -> bytes:
    """Read the bytes of an image from a regular file; a pipe or a device could block forever."""
    try:
        number = os.open(place.path, os.O_RDONLY | os.O_NONBLOCK)
        try:  # a file object would take five times as long
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                raise DataError("not a regular file")
            length = status.st_size - place.offset if place.length is None else place.length
            if length > MAX_FILE_BYTES:
                raise DataError(f"{length} bytes are more than the limit of {MAX_FILE_BYTES}")
            return os.pread(number, max(length, 0), place.offset)
        finally:
            os.close(number)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})") from error


def main() -> None:
    """Answer requests until the input ends, which happens when the parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which finishes its step
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    out = open(os.dup(1), "wb")  # noqa: SIM115 (open until the process ends)
    os.dup2(2, 1)  # output of libraries must not be taken for an answer
    shared = Shared(int(sys.argv[1]))
    for line in sys.stdin.buffer:
        answer, pixels = answer_into(json.loads(line), shared.view)
        out.write(json.dumps(answer | {"bytes": len(pixels)}).encode() + b"\n")
        out.flush()


def command(shared: Shared) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of a worker that shares this memory."""
    import partly

    source = str(Path(partly.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # -P: do not import files of the current folder.
    return [sys.executable, "-P", "-m", __name__, str(shared.number)], os.environ | threads | {"PYTHONPATH": paths}


if __name__ == "__main__":
    main()
