"""A process that looks at pictures and decodes them: a request a line on its input, an answer on its output.

It is a program and no function of a pool, so that nobody's main module is imported again, nothing is forked from a
process with threads, and no torch is loaded. What goes over the pipes is JSON and pixels.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from partly.clock import Draw
from partly.errors import DataError
from partly.pictures.augmentation import Augmentation
from partly.pictures.reading import Look, looked, rendered

MOST_MEMORY = 4 << 30  # bytes of address space: whatever a picture does, it does not take the machine with it
MOST_BYTES = 1 << 28  # of a file
Request = dict[str, Any]
Answer = tuple[dict[str, Any], bytes]


class Place(NamedTuple):
    """Where the bytes of a picture lie: a file, or a part of one."""

    path: str
    offset: int = 0
    length: int | None = None  # None: to the end


def answered(request: Request) -> Answer:
    """What there is to say, and pixels. A function of the request and of the files alone."""
    places = [Place(*place) for place in request["places"]]
    if request["do"] == "look":
        return {"looks": [asdict(_looked(place)) for place in places]}, b""
    return _pixels(request, places)


def _looked(place: Place) -> Look:
    try:
        return looked(content(place))
    except DataError as error:
        return Look("", str(error))


def _pixels(request: Request, places: list[Place]) -> Answer:
    """Of the names in the request, at its size, with its draw; a picture that cannot be shown is told of."""
    viewers: list[Any] = [None] * len(places)
    if request["draw"] is not None:
        view, draw = Augmentation(**request["augmentation"]).view, Draw(*request["draw"])
        viewers = [partial(view, draw=draw, item=name) for name in request["names"]]
    parts = []
    for place, viewer in zip(places, viewers, strict=True):
        try:
            parts.append(rendered(content(place), request["size"], viewer).tobytes())
        except DataError as error:
            return {"bad": [place.path, str(error)]}, b""
    return {}, b"".join(parts)


def content(place: Place) -> bytes:
    """The bytes; of a plain file only, since others may keep one waiting for ever."""
    try:
        with open(os.open(place.path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise DataError("not a plain file")
            if (found.st_size if place.length is None else place.length) > MOST_BYTES:
                raise DataError(f"{found.st_size} bytes are more than the {MOST_BYTES} that are read of a picture")
            file.seek(place.offset)
            return file.read(MOST_BYTES if place.length is None else place.length)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})") from error


def main() -> None:
    """Until the input ends, as it does when whoever asks has gone, in whatever way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks: it still has a step to finish
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    out = open(os.dup(1), "wb")  # noqa: SIM115, for as long as the process lives
    os.dup2(2, 1)  # so that what a library prints is not taken for an answer
    for line in sys.stdin.buffer:
        told, pixels = answered(json.loads(line))
        out.write(json.dumps(told | {"bytes": len(pixels)}).encode() + b"\n")
        out.write(pixels)
        out.flush()


def command() -> tuple[list[str], dict[str, str]]:
    """How to start one, and its environment."""
    import partly

    source = str(Path(partly.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # -P: a file of the folder that somebody happens to be in is not imported.
    return [sys.executable, "-P", "-m", __name__], os.environ | threads | {"PYTHONPATH": paths}


if __name__ == "__main__":
    main()
