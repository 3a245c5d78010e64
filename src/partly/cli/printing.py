"""Console output: progress and notes on stderr, results on stdout, as text, as a table or as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from partly.distributed.launched import current_rank

MIN_WIDTH = 10  # of a column of text, in characters
COLUMNS = {"mAP": "mAP", "CF1": "CF1", "OF1": "OF1", "exact_match": "exact match", "P@1": "P@1"}  # metric -> heading


def say(text: str) -> None:
    """Print a note to stderr, from the first process only."""
    if current_rank().first:
        print(printable(text), file=sys.stderr)


def show(text: str) -> None:
    """Print a line of the result to stdout, from the first process only."""
    if current_rank().first:
        print(printable(text))


def printable(text: str) -> str:
    """Escape control characters and changes of the reading direction, so that text cannot command a terminal."""
    return re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", lambda m: ascii(m[0])[1:-1], text)


def one_line(name: str) -> str:
    """Return a name as printable text in one line."""
    return printable(" ".join(name.splitlines()))


def summarize(labels: Mapping[str, Any]) -> str:
    """Describe labels in one line, from the counts of `Labels.summary()`."""
    return (
        f"{labels['items']:,} items, {labels['labels']:,} labels, {100 * labels['known_share']:.3g} % of entries known "
        f"({labels['yes']:,} yes, {labels['no']:,} no)"
    )


def print_json(result: Any, as_json: bool) -> bool:
    """Print a result as JSON if `as_json`, and return `as_json`."""
    if as_json and current_rank().first:
        print(json.dumps(_plain(result), allow_nan=False))
    return as_json


def _plain(value: Any) -> Any:
    """Convert paths to text and undefined numbers to null: JSON has no NaN."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def print_scores(rows: dict[str, dict[str, float]], report: Path | None = None, as_json: bool = False) -> None:
    """Print a table of the main metrics, one row per run, and the number of known entries; JSON holds all metrics."""
    if not current_rank().first:
        return
    if not print_json({"scores": rows, "report": report}, as_json):
        _print_score_table(rows)
    if report is not None:
        say(f"Report: {report}")


def _print_score_table(rows: dict[str, dict[str, float]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("", *COLUMNS.values(), "labels", "entries", box=box.SIMPLE, collapse_padding=True)
    for title, row in rows.items():
        scores = ("–" if row[key] != row[key] else f"{row[key]:.3f}" for key in COLUMNS)
        table.add_row(Text(printable(title)), *scores, f"{row['labels_counted']}", f"{row['entries_known']}")
    Console().print(table)


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print a table of text cells below its title."""
    if not current_rank().first:
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    show(title)
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for place, name in enumerate(header):
        numeric = all(re.match(r"[-−]?[\d,]+(\.|$)|[–<]", row[place]) for row in rows)
        table.add_column(one_line(name), no_wrap=numeric, min_width=None if numeric else MIN_WIDTH)  # text wraps first
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    Console().print(table)
    show("")
