"""A process that reads one uploaded file: `python -m partly.annotate.upload FILE OUT`.

Whatever bytes do to a parser, a crash, an endless loop or gigabytes, ends this process and not the server. It has
limits of memory, processor time and output; the server adds one of time.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from partly.data.formats.label_studio import read, recognizes
from partly.data.label_semantics import LabelSemantics
from partly.errors import DataError, PartlyError

MEMORY_BYTES = 1 << 30  # beside what the program itself takes
CPU_SECONDS = 60
OUTPUT_BYTES = 64 << 20


def statements(path: Path) -> dict[str, Any]:
    """Items, labels, and the entries that are known (row, column, value) of a file of Label Studio. Where people
    disagreed, and what nobody chose, is unknown: silence is no answer here."""
    if not recognizes(path):
        raise DataError("This is no list of tasks of Label Studio (Export, JSON).")
    labels = read(path, None, LabelSemantics("unknown", "unknown"))
    row, column, value = labels.entries()
    entries = {"row": row.tolist(), "column": column.tolist(), "value": (value == 1).astype(int).tolist()}
    return {"items": list(labels.ids), "labels": list(labels.names)} | entries


def limit() -> None:
    """Set limits on this process, once everything is imported."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    most = pages * resource.getpagesize() + MEMORY_BYTES
    for kind, value in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))


def main() -> None:
    path, out = map(Path, sys.argv[1:])
    limit()
    try:
        told = statements(path)
    except PartlyError as error:
        told = {"error": str(error).replace(str(path), "the file")}
    out.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
