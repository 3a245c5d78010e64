"""Result lines: one JSON object a finished cell, in a file that survives a kill; and whether they belong together."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from partly.atomic_io import disk_errors, no_link, open_regular, read_json, write_file
from partly.comparison.plan import OPTIONAL
from partly.comparison.protocol import PROTOCOL, ProtocolError
from partly.errors import DataError

Line = dict[str, Any]
KEY = ("data", "scenario", "method", "head", "optimizer", "seed", "settings", "recipe", "validation", "tune")
TIMING = ("seconds", "training_seconds", "memory_mb")  # what may differ between two runs of the same cell


def key_of(line: Line) -> str:
    more = {name: line[name] for name in OPTIONAL if name in line}
    return json.dumps({name: line[name] for name in (*KEY, "data_digest")} | more, sort_keys=True)


def named(line: Line) -> str:
    """A cell in words."""
    return ", ".join(str(line[name]) for name in ("data", "scenario", "method", "head")) + f", seed {line['seed']}"


def read(path: Path) -> list[Line]:
    """The lines of finished cells in a file."""
    return [line for line in _read(path) if "failed" not in line]


def read_failed(path: Path) -> list[Line]:
    """The lines of cells that failed, and have not been run since."""
    every = _read(path)
    done = {key_of(line) for line in every if "failed" not in line}
    return list({key_of(line): line for line in every if "failed" in line and key_of(line) not in done}.values())


def _read(path: Path) -> list[Line]:
    """A last line without its end was cut off by a crash and does not count."""
    if not path.exists():
        return []
    lines = []
    try:
        with open_regular(path) as file:
            *whole, _ = file.read().split(b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from None
    for number, text in enumerate(whole, 1):
        try:
            line = read_json(text)
            key_of(line)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}:{number}: not a result line ({error!r}). Move the file away, or take this line out of it."
            ) from None
        lines.append(line)
    return lines


def append(path: Path, line: Line) -> None:
    """Add a line and force it to disk. What a crash left of an earlier one is cut off first. Without a buffer: one that
    could not be written would be tried again when the file is closed, after the half that is there already."""
    with disk_errors(path.parent), open(path, "ab+", buffering=0, opener=no_link) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(0)
            whole = file.read().rfind(b"\n") + 1
            if whole < end:
                file.truncate(whole)
        content = json.dumps(line, sort_keys=True).encode() + b"\n"
        while content:
            content = content[file.write(content) :]
        os.fsync(file.fileno())


def settle(path: Path, lines: Iterable[Line]) -> None:
    """The finished file, in an order that does not depend on which worker was faster."""
    ordered = sorted(lines, key=key_of)
    write_file(path, b"".join(json.dumps(line, sort_keys=True).encode() + b"\n" for line in ordered))


def check_present(lines: list[Line]) -> None:
    """Refuse to go on from lines of another protocol: the same cell would give other numbers today."""
    others = sorted({line["protocol"] for line in lines} - {PROTOCOL})
    if others:
        raise ProtocolError(
            f"These result lines are of protocol {', '.join(map(str, others))}, and this version has {PROTOCOL}: "
            "cells run today do not belong beside them. Go on in another folder."
        )


def check(lines: Iterable[Line]) -> None:
    """Refuse lines that must not stand side by side; see `ConsistencyCheck`."""
    ConsistencyCheck(lines)


class ConsistencyCheck:
    """Refuses lines that must not stand side by side: another protocol, data or mask, or one cell twice.

    Versions of one protocol give the same numbers, so an upgrade keeps earlier lines. A new line is compared with the
    values seen before, never with every earlier line.
    """

    RULES = (
        ("another protocol", "protocol", ()),
        ("other data under the same name", "data_digest", ("data",)),
        ("another mask", "mask_sha256", ("data", "scenario", "seed")),
    )

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self._values: dict[tuple[str, tuple[Any, ...]], set[tuple[Any]]] = {}
        self._keys: Counter[str] = Counter()
        for line in lines:
            self._register(line)
        self._refuse(self._values, self._keys)

    def add(self, line: Line) -> None:
        """Refuse a line that contradicts those before it."""
        self._refuse(*self._register(line))

    def _register(self, line: Line) -> tuple[list[tuple[str, tuple[Any, ...]]], list[str]]:
        places = []
        for what, name, within in self.RULES:
            place = (what, tuple(line[part] for part in within))
            self._values.setdefault(place, set()).add((line[name],))
            places.append(place)
        key = key_of(line)
        self._keys[key] += 1
        return places, [key]

    def _refuse(self, places: Iterable[tuple[str, tuple[Any, ...]]], keys: Iterable[str]) -> None:
        differing = [(place, values) for place in places if len(values := self._values[place]) > 1]
        problems = [f"{what}: {group or 'all lines'}: {sorted(values)}" for (what, group), values in differing]
        problems += [f"the same cell twice: {key}" for key in keys if self._keys[key] > 1]
        if problems:
            raise ProtocolError(
                "These result lines do not belong together:\n  "
                + "\n  ".join(problems)
                + "\nKeep them in different folders."
            )
