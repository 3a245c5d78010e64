"""One look at every picture before anything is learned: which are bad and why, what colours they have, and a digest of
each. What was found is kept, by size and time of the file, so that the next command need not look again.
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
from partly.images.decoder_pool import Died, crew
from partly.images.reading import Look
from partly.images.showing import track_progress
from partly.images.worker import Place

CHUNK = 16  # pictures of one question
SETTLED = 2 * 10**9  # ns: a file as new as that may still change without its time changing
FORMAT = f"1, Pillow {pillow}"  # of what is kept; another decoder may find other pictures bad
Stamp = tuple[int, int]  # size and time of a file


def cache_folder() -> Path:
    """Where is kept what can be made again: $PARTLY_CACHE, else where such things are kept on this machine."""
    said = os.environ.get("PARTLY_CACHE")
    return Path(said) if said else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "partly"


def survey(places: Sequence[Place], where: str, progress: bool = True) -> list[Look]:
    """A look at each of these; `where` they come from names the file in which it is kept."""
    kept_in = cache_folder() / "surveys" / f"{sha256(os.path.abspath(where).encode())[:32]}.json"
    kept, stamps = _kept(kept_in), [_stamp(place) for place in places]
    found = [_known(kept, place, stamp) for place, stamp in zip(places, stamps, strict=True)]
    todo = [i for i, look in enumerate(found) if look is None]
    new: dict[str, Any] = {}
    settled = time.time_ns() - SETTLED
    try:
        for i, look in zip(
            todo, track_progress(_looks([places[i] for i in todo]), len(todo), where, progress), strict=True
        ):
            found[i], stamp = look, stamps[i]
            if stamp is not None and stamp[1] < settled:
                new[_key(places[i])] = [*stamp, asdict(look)]
    finally:
        if new:
            _keep(kept_in, kept | new)
    return [look for look in found if look is not None]


def _looks(places: Sequence[Place]) -> Iterator[Look]:
    chunks = [places[i : i + CHUNK] for i in range(0, len(places), CHUNK)]
    requests = ({"do": "look", "places": chunk} for chunk in chunks)
    everybody = crew()
    answers = everybody.in_order(requests, 4 * max(1, everybody.count))
    for chunk, answer in zip(chunks, answers, strict=True):
        try:
            yield from (Look(**look) for look in answer.result()[0]["looks"])
        except Died:
            yield from map(_alone, chunk)


def _alone(place: Place) -> Look:
    """One that lay beside another over which a process died, or that one itself."""
    try:
        return Look(**crew().ask({"do": "look", "places": [place]}).result()[0]["looks"][0])
    except Died as error:
        return Look("", f"the decoder crashed. {error}")


# ---------------------------------------------------------------- what is kept


def _stamp(place: Place) -> Stamp | None:
    with suppress(OSError, ValueError):
        found = os.stat(place.path)
        return found.st_size, found.st_mtime_ns
    return None


def _key(place: Place) -> str:
    return json.dumps(place)


def _known(kept: dict[str, Any], place: Place, stamp: Stamp | None) -> Look | None:
    entry = kept.get(_key(place))
    return Look(**entry[2]) if entry is not None and stamp is not None and tuple(entry[:2]) == stamp else None


def _kept(path: Path) -> dict[str, Any]:
    """Nothing, where it cannot be read or is not what was written: it is only there to save time."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        whole = json.loads(path.read_text("utf-8"))
        if whole["format"] == FORMAT and whole["sha256"] == _seal(whole["looks"]):
            looks: dict[str, Any] = whole["looks"]
            return looks
    return {}


def _keep(path: Path, looks: dict[str, Any]) -> None:
    with suppress(OSError, DataError):  # a cache that cannot be written is none
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = {"format": FORMAT, "sha256": _seal(looks), "looks": looks}
        write_file(path, json.dumps(whole).encode())


def _seal(looks: dict[str, Any]) -> str:
    return sha256(json.dumps(looks).encode())
