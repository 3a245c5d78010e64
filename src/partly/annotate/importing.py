"""Answers that people have given elsewhere: tasks of Label Studio, as an import in the ledger."""

from __future__ import annotations

import json
import logging
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partly.annotate.accounts import Person
from partly.annotate.passwords import Refused
from partly.annotate.programs import program
from partly.annotate.question_queue import Desk
from partly.errors import listing

SECONDS = 90.0  # that reading a file may take
log = logging.getLogger("partly.annotate")


@dataclass(frozen=True)
class Imported:
    """statements: that were appended. imported_before: the batch that says the same already, 0 for none."""

    statements: int
    imported_before: int = 0


def take_in(desk: Desk, person: Person, path: Path, force: bool = False) -> Imported:
    """Append what a file says of the items and labels that are asked about. Another process reads the file (`upload`).
    The same again changes nothing, unless forced."""
    told = _read(path)
    strange = [f"item {name!r}" for name in told["items"] if name not in desk.rows]
    strange += [f"label {name!r}" for name in told["labels"] if name not in desk.columns]
    if strange:
        raise Refused(f"Nobody asks about {len(strange)} of these" + listing(strange, len(strange)), 422)
    items, labels = np.array(told["items"], object)[told["row"]], np.array(told["labels"], object)[told["column"]]
    if not len(items):
        return Imported(0)
    last, yes, note = len(desk.ledger.log()), told["value"], "from Label Studio"
    batch = desk.ledger.append(
        items, labels, yes, kind="import", author=person.name, note=note, skip_repeated=not force
    )
    return Imported(0, batch) if batch <= last else Imported(len(items))


def _read(path: Path) -> dict[str, Any]:
    """What the file says; refused where it cannot be read, or does harm to the process that reads it."""
    out = path.with_name("statements.json")
    command, environment = program("partly.annotate.upload", str(path), str(out))
    try:
        ended = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Refused(
            f"Reading the file takes more than {SECONDS:.0f} seconds. Split it into smaller ones.", 422
        ) from None
    if ended.returncode != 0:
        log.error(
            "reading an uploaded file ended with %s: %s",
            ended.returncode,
            ended.stderr[-2000:].decode(errors="replace"),
        )
        raise Refused(
            "The file cannot be read: it is damaged, or needs too much memory or time. Nothing was taken in.", 422
        )
    told: dict[str, Any] = json.loads(out.read_text())
    if "error" in told:
        raise Refused(told["error"], 422)
    return told
