"""A process that looks at pictures and decodes them: a request a line on its input, an answer on its output.

It is a program and no function of a pool, so that nobody's main module is imported again, nothing is forked from a
process with threads, and no torch is loaded. What goes over the pipes is JSON; pixels are left in memory that is shared
with who asks.
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
from partly.images.reading import Look, looked, rendered, whole
from partly.images.shared import Shared

MOST_MEMORY = 4 << 30  # bytes of address space: whatever a picture does, it does not take the machine with it
MOST_BYTES = 1 << 28  # of a file
Request = dict[str, Any]
Answer = tuple[dict[str, Any], bytes]
Room = Callable[[int], bytearray | memoryview]  # for so many bytes


class Place(NamedTuple):
    """Where the bytes of a picture lie: a file, or a part of one."""

    path: str
    offset: int = 0
    length: int | None = None  # None: to the end


def answered(request: Request) -> Answer:
    """What there is to say, and pixels. A function of the request and of the files alone."""
    told, pixels = written(request, bytearray)
    return told, bytes(pixels)


def written(request: Request, room: Room) -> tuple[dict[str, Any], bytearray | memoryview]:
    """The same with the pixels in memory that is given for them."""
    places = [Place(*place) for place in request["places"]]
    if request["do"] == "look":
        return {"looks": [asdict(_looked(place)) for place in places]}, room(0)
    return _whole(places[0], request["size"], room) if request["do"] == "whole" else _pixels(request, places, room)


def _looked(place: Place) -> Look:
    try:
        return looked(content(place))
    except DataError as error:
        return Look("", str(error))


def _pixels(request: Request, places: list[Place], room: Room) -> tuple[dict[str, Any], bytearray | memoryview]:
    """Of the names in the request, at its size, with its draw; a picture that cannot be shown is told of."""
    viewers: list[Any] = [None] * len(places)
    if request["draw"] is not None:
        view, draw = Augmentation(**request["augmentation"]).view, Draw(*request["draw"])
        viewers = [partial(view, draw=draw, item=name) for name in request["names"]]
    size = request["size"]
    pixels = room(len(places) * size * size * 3)
    shown = np.frombuffer(pixels, np.uint8).reshape(len(places), size, size, 3)
    for place, viewer, its in zip(places, viewers, shown, strict=True):
        try:
            its[:] = rendered(content(place), size, viewer)
        except DataError as error:
            return {"bad": [place.path, str(error)]}, room(0)
    return {}, pixels


def _whole(place: Place, longest: int, room: Room) -> tuple[dict[str, Any], bytearray | memoryview]:
    """One picture in its own shape."""
    try:
        found = whole(content(place), longest)
    except DataError as error:
        return {"bad": [place.path, str(error)]}, room(0)
    pixels = room(found.nbytes)
    np.frombuffer(pixels, np.uint8).reshape(found.shape)[:] = found
    return {"shape": found.shape}, pixels


def content(place: Place) -> bytes:
    """The bytes; of a plain file only, since others may keep one waiting for ever."""
    try:
        number = os.open(place.path, os.O_RDONLY | os.O_NONBLOCK)
        try:  # without a file object: five times as fast
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode):
                raise DataError("not a plain file")
            length = found.st_size - place.offset if place.length is None else place.length
            if length > MOST_BYTES:
                raise DataError(f"{length} bytes are more than the {MOST_BYTES} that are read of a picture")
            return os.pread(number, max(length, 0), place.offset)
        finally:
            os.close(number)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})") from error


def main() -> None:
    """Until the input ends, as it does when whoever asks has gone, in whatever way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks: it still has a step to finish
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    out = open(os.dup(1), "wb")  # noqa: SIM115, for as long as the process lives
    os.dup2(2, 1)  # so that what a library prints is not taken for an answer
    shared = Shared(int(sys.argv[1]))
    for line in sys.stdin.buffer:
        told, pixels = written(json.loads(line), shared.room)
        out.write(json.dumps(told | {"bytes": len(pixels)}).encode() + b"\n")
        out.flush()


def command(shared: Shared) -> tuple[list[str], dict[str, str]]:
    """How to start one that leaves pixels in this memory, and its environment."""
    import partly

    source = str(Path(partly.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # -P: a file of the folder that somebody happens to be in is not imported.
    return [sys.executable, "-P", "-m", __name__, str(shared.number)], os.environ | threads | {"PYTHONPATH": paths}


if __name__ == "__main__":
    main()
