"""Read one uploaded file in a process of its own: `python -m partly.annotate.upload FILE OUTPUT`.

A file that crashes a parser, never ends or needs gigabytes ends this process, not the server. The process limits its
memory, processor time and output; the server limits the elapsed time.
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

MEMORY_BYTES = 1 << 30  # on top of what the imported modules take
CPU_SECONDS = 60
OUTPUT_BYTES = 64 << 20


def read_statements(path: Path) -> dict[str, Any]:
    """Return items, labels and known entries (row, column, value) of a Label Studio export.

    Entries without a choice, or with different choices of several people, are unknown.
    """
    if not recognizes(path):
        raise DataError("This is not a list of Label Studio tasks. Export them as JSON.")
    labels = read(path, None, LabelSemantics("unknown", "unknown"))
    row, column, value = labels.entries()
    entries = {"row": row.tolist(), "column": column.tolist(), "value": (value == 1).astype(int).tolist()}
    return {"items": list(labels.ids), "labels": list(labels.names)} | entries


def limit_resources() -> None:
    """Set limits on this process, after all imports."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    for kind, limit in (
        (resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (limit if hard < 0 else min(limit, hard), hard))


def main() -> None:
    path, output = map(Path, sys.argv[1:])
    limit_resources()
    try:
        content = read_statements(path)
    except PartlyError as error:
        content = {"error": str(error).replace(str(path), "the file")}
    output.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
