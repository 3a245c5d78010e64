"""What commands print: words on the way to stderr, what came out to stdout, as a table or as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from partly.distributed.launched import launched


def say(text: str) -> None:
    if launched().first:
        print(printable(text), file=sys.stderr)


def show(text: str) -> None:
    """Print a line of the result to stdout."""
    if launched().first:
        print(printable(text))


def printable(text: str) -> str:
    """Text of anybody's making for a terminal, to which it can say nothing but text: no commands, no other direction of
    reading. Lines stay lines."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", lambda m: ascii(m[0])[1:-1], text)


def one_line(name: str) -> str:
    """A name, printable, within a line."""
    return printable(" ".join(name.splitlines()))


def print_json(found: Any, wanted: bool) -> bool:
    """Print what came out, where somebody wants it so; whether it was printed."""
    if wanted and launched().first:
        print(json.dumps(_plain(found), allow_nan=False))
    return wanted


def _plain(found: Any) -> Any:
    """As JSON has it: what is undefined is null, since there is no NaN."""
    if isinstance(found, dict):
        return {key: _plain(value) for key, value in found.items()}
    if isinstance(found, list | tuple):
        return [_plain(value) for value in found]
    if isinstance(found, float) and not math.isfinite(found):
        return None
    return str(found) if isinstance(found, Path) else found


def print_scores(rows: dict[str, dict[str, float]], page: Path | None = None, as_json: bool = False) -> None:
    """A table that fits a narrow terminal: a row per run, a column per score; as JSON there are all of them."""
    if page is not None:
        say(f"Report: {page}")
    if not launched().first or print_json({"scores": rows, "report": page}, as_json):
        return
    shown = {"mAP": "mAP", "CF1": "CF1", "OF1": "OF1", "exact_match": "exact", "P@1": "P@1"}
    table = Table("", *shown.values(), "labels", "entries")
    for title, row in rows.items():
        scores = ("–" if row[key] != row[key] else f"{row[key]:.3f}" for key in shown)
        table.add_row(Text(printable(title)), *scores, f"{row['labels_counted']}", f"{row['entries_known']}")
    Console().print(table)
