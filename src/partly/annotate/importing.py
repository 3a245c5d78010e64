"""Import answers from Label Studio into the ledger."""

from __future__ import annotations

import json
import logging
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partly.annotate.accounts import Person
from partly.annotate.errors import ApiError
from partly.annotate.question_queue import QuestionQueue
from partly.annotate.subprocesses import module_command
from partly.errors import listing

READ_SECONDS = 90.0
log = logging.getLogger("partly.annotate")


@dataclass(frozen=True)
class ImportResult:
    """Statements that were appended, and the batch that holds the same already (0 for none)."""

    statements: int
    imported_before: int = 0


def import_label_studio(queue: QuestionQueue, person: Person, path: Path, force: bool = False) -> ImportResult:
    """Append the answers of a file. The same file again changes nothing, unless forced."""
    content = _read(path)
    unknown = [f"item {name!r}" for name in content["items"] if name not in queue.rows]
    unknown += [f"label {name!r}" for name in content["labels"] if name not in queue.columns]
    if unknown:
        raise ApiError(f"{len(unknown)} names are not in this project" + listing(unknown, len(unknown)), 422)
    items = np.array(content["items"], object)[content["row"]]
    labels = np.array(content["labels"], object)[content["column"]]
    if not len(items):
        return ImportResult(0)
    last = len(queue.ledger.log())
    batch = queue.ledger.append(
        items,
        labels,
        content["value"],
        kind="import",
        author=person.name,
        note="from Label Studio",
        skip_repeated=not force,
    )
    return ImportResult(0, batch) if batch <= last else ImportResult(len(items))


def _read(path: Path) -> dict[str, Any]:
    """Read the file in another process, which a malicious file may crash."""
    output = path.with_name("statements.json")
    command, environment = module_command("partly.annotate.upload", str(path), str(output))
    try:
        process = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=READ_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise ApiError(
            f"Reading the file takes more than {READ_SECONDS:.0f} seconds. Split it into smaller files.", 422
        ) from None
    if process.returncode != 0:
        errors = process.stderr[-2000:].decode(errors="replace")
        log.error("reading an uploaded file ended with %s: %s", process.returncode, errors)
        raise ApiError(
            "The file cannot be read: it is damaged, or needs too much memory or time. Nothing was imported.", 422
        )
    content: dict[str, Any] = json.loads(output.read_text())
    if "error" in content:
        raise ApiError(content["error"], 422)
    return content
