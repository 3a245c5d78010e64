"""The summary page of `partly demo`: comparisons with few labels, and with none."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from partly.atomic_io import write_file
from partly.report.layout import load_template

Scores = Mapping[str, float]  # between 0 and 1, by the name of what was trained


@dataclass(frozen=True)
class Section:
    """A comparison: its result in a sentence, its data, and a chart for each measure."""

    title: str
    result: str
    text: str = ""
    charts: Mapping[str, Scores] = field(default_factory=dict)
    highlighted: Collection[str] = ()
    details: str | None = None  # file with more about it


def write(title: str, sections: Sequence[Section], path: Path) -> None:
    """Write the page atomically."""
    write_file(path, load_template("demo.html").render(title=title, sections=sections).encode())
