"""Result records: one JSON object per finished cell, in a file that survives a crash, and checks of consistency."""

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

Record = dict[str, Any]
KEY = ("data", "scenario", "method", "head", "optimizer", "seed", "settings", "recipe", "validation", "tune")
TIMING = ("seconds", "training_seconds", "memory_mb")  # may differ between two runs of the same cell


def key_of(record: Record) -> str:
    optional = {name: record[name] for name in OPTIONAL if name in record}
    return json.dumps({name: record[name] for name in (*KEY, "data_digest")} | optional, sort_keys=True)


def describe(record: Record) -> str:
    """Return a short description of a cell."""
    return ", ".join(str(record[name]) for name in ("data", "scenario", "method", "head")) + f", seed {record['seed']}"


def read(path: Path) -> list[Record]:
    """Read the records of finished cells."""
    return [record for record in _read_all(path) if "failed" not in record]


def read_failed(path: Path) -> list[Record]:
    """Read the records of cells that failed and have not finished since."""
    records = _read_all(path)
    finished = {key_of(record) for record in records if "failed" not in record}
    failed = {key_of(record): record for record in records if "failed" in record}
    return [record for key, record in failed.items() if key not in finished]


def _read_all(path: Path) -> list[Record]:
    """Read all records; an unterminated last line was cut off by a crash and is ignored."""
    if not path.exists():
        return []
    records = []
    try:
        with open_regular(path) as file:
            *lines, _ = file.read().split(b"\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}).") from None
    for number, line in enumerate(lines, 1):
        try:
            record = read_json(line)
            key_of(record)
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}:{number}: not a result record ({error!r}). Move the file away, or remove this line."
            ) from None
        records.append(record)
    return records


def append(path: Path, record: Record) -> None:
    """Append a record and force it to disk, after removing an unterminated line that a crash has left.

    The file is unbuffered: a buffer that could not be written would be written again when the file is closed.
    """
    with disk_errors(path.parent), open(path, "ab+", buffering=0, opener=no_link) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(0)
            complete = file.read().rfind(b"\n") + 1
            if complete < end:
                file.truncate(complete)
        content = json.dumps(record, sort_keys=True).encode() + b"\n"
        while content:
            content = content[file.write(content) :]
        os.fsync(file.fileno())


def write_sorted(path: Path, records: Iterable[Record]) -> None:
    """Write the finished file in an order that does not depend on the speed of workers."""
    ordered = sorted(records, key=key_of)
    write_file(path, b"".join(json.dumps(record, sort_keys=True).encode() + b"\n" for record in ordered))


def check_protocol(records: Iterable[Record]) -> None:
    """Refuse to continue from records of another protocol: the same cell would give other numbers today."""
    others = sorted({record["protocol"] for record in records} - {PROTOCOL})
    if others:
        raise ProtocolError(
            f"These result records have protocol {', '.join(map(str, others))}, but this version has {PROTOCOL}: "
            "they cannot be mixed. Continue in another folder."
        )


def check_consistency(records: Iterable[Record]) -> None:
    """Refuse records that cannot be compared; see `ConsistencyCheck`."""
    ConsistencyCheck(records)


class ConsistencyCheck:
    """Refuses records that cannot be compared: another protocol, data or mask, or one cell twice.

    Versions of one protocol give the same numbers, so an upgrade keeps earlier records. A new record is compared with
    the values seen before, never with every earlier record.
    """

    RULES = (
        ("another protocol", "protocol", ()),
        ("other data under the same name", "data_digest", ("data",)),
        ("another mask", "mask_sha256", ("data", "scenario", "seed")),
    )

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._values: dict[tuple[str, tuple[Any, ...]], set[tuple[Any]]] = {}
        self._keys: Counter[str] = Counter()
        for record in records:
            self._register(record)
        self._refuse(self._values, self._keys)

    def add(self, record: Record) -> None:
        """Refuse a record that contradicts earlier ones."""
        self._refuse(*self._register(record))

    def _register(self, record: Record) -> tuple[list[tuple[str, tuple[Any, ...]]], list[str]]:
        scopes = []
        for problem, name, within in self.RULES:
            scope = (problem, tuple(record[field] for field in within))
            self._values.setdefault(scope, set()).add((record[name],))
            scopes.append(scope)
        key = key_of(record)
        self._keys[key] += 1
        return scopes, [key]

    def _refuse(self, scopes: Iterable[tuple[str, tuple[Any, ...]]], keys: Iterable[str]) -> None:
        differing = [(scope, values) for scope in scopes if len(values := self._values[scope]) > 1]
        problems = [f"{problem}: {group or 'all records'}: {sorted(values)}" for (problem, group), values in differing]
        problems += [f"the same cell twice: {key}" for key in keys if self._keys[key] > 1]
        if problems:
            raise ProtocolError(
                "These result records cannot be compared:\n  "
                + "\n  ".join(problems)
                + "\nKeep them in different folders."
            )
