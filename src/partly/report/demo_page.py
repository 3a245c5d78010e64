"""The summary page of `partly demo`: what few labels, or none, are enough for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from partly.atomic_io import write_file
from partly.report.layout import load_template


@dataclass(frozen=True)
class Act:
    """A comparison: mAP by the name of what was trained, worst first."""

    title: str
    text: str
    scores: Mapping[str, float] = field(default_factory=dict)


def write(title: str, acts: Sequence[Act], path: Path) -> None:
    """Write the page atomically."""
    write_file(path, load_template("demo.html").render(title=title, acts=acts).encode())
