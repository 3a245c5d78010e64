"""Pictures of the report, as bytes: charts in SVG, and the label matrix in PNG.

Colours are from palettes made for colour-blind readers, and nothing is told by colour alone: yes, no and unknown differ
in shape, runs in marker and dash.
"""

from __future__ import annotations

import io
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image  # matplotlib brings it along

from partly.labels import Ternary
from partly.report import chart
from partly.report.chart import GREY, Axis, Chart, Drawing

YES, NO, UNKNOWN = "#2f7fd0", "#e08a1e", GREY
COLOURS = ("#b5478f", "#12967a", "#a68400", "#5a6bd8", "#c7563a", "#3d94b0")
PRIVILEGED = "#808893"
MARKERS = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"))
DASHES = "6 3"


@dataclass(frozen=True)
class Look:
    """How a run is drawn, everywhere the same."""

    colour: str
    marker: str
    sign: str  # the marker as a character, for the page
    dashed: bool


def look(position: int, privileged: bool) -> Look:
    marker, sign = MARKERS[position % len(MARKERS)]
    return Look(PRIVILEGED if privileged else COLOURS[position % len(COLOURS)], marker, sign, privileged)


@dataclass(frozen=True)
class Curve:
    """One run in one panel: a number per epoch, and the epoch that was kept, if one was chosen."""

    look: Look
    x: Sequence[int]
    y: Sequence[float]
    best: int | None = None
    name: str = ""  # what is said of its points


def matrix(z: Ternary) -> bytes:
    """PNG of labels [R, C]: a full cell is yes, a bar no, a dot unknown."""
    file = io.BytesIO()
    Image.fromarray(cells(z), "RGBA").save(file, "PNG", optimize=True)
    return file.getvalue()


def curves(panel: Sequence[Curve]) -> Drawing:
    """A number over the epochs, a line per run, a ring around the epoch that was kept."""
    last = max(max(curve.x) for curve in panel)
    drawn = _over(chart.even(0.5, last + 0.5, "epoch", most=8, whole=True), panel)
    for curve in panel:
        if curve.best is not None and curve.best in curve.x:
            at = [curve.best], [curve.y[curve.x.index(curve.best)]]
            drawn.marks(*at, "o", f'fill="none" stroke="{curve.look.colour}" stroke-width=".145"', 11)
    return drawn.drawing(said for curve in panel for said in _said(curve, "epoch"))


def over_answers(arms: Mapping[str, Curve]) -> Drawing:
    """A score over the answers, a line per arm, by its title."""
    ends = chart.around(x for curve in arms.values() for x in curve.x)
    drawn = _over(chart.even(*ends, "answers", most=5, whole=True), list(arms.values()))
    return drawn.drawing(said for title, curve in arms.items() for said in _said(replace(curve, name=title), "answers"))


def _over(across: Axis, panel: Sequence[Curve]) -> Chart:
    drawn = Chart(331, 194, across, chart.even(*chart.around(y for curve in panel for y in curve.y)))
    for curve in panel:
        drawn.line(curve.x, curve.y, curve.look.colour, DASHES if curve.look.dashed else "none")
        some = slice(None, None, max(1, len(curve.x) // 8))
        drawn.marks(curve.x[some], curve.y[some], curve.look.marker, f'fill="{curve.look.colour}"', 4.5)
    return drawn


def _said(curve: Curve, what: str) -> Iterator[tuple[float, float, str]]:
    """What is said of each point of a curve."""
    for x, y in zip(curve.x, curve.y, strict=True):
        yield x, y, f"{curve.name}, {what} {x:,}: {y:.4g}".removeprefix(", ")


def scatter(names: Sequence[str], known: npt.NDArray[Any], ap: Sequence[tuple[Look, str, npt.NDArray[Any]]]) -> Drawing:
    """The AP of labels over their number of known yes, [L] each; runs with how they are drawn and their titles. Small,
    so that it can be read on a phone."""
    most = max(1, int(known.max()))
    ticks = {0: "0"} | {10**k: f"{10**k:,}" for k in range(len(str(most)))}
    across = Axis(-0.1, 1.3 * most, ticks, "known yes", _linear_then_log)
    drawn = Chart(389, 230, across, chart.even(-0.03, 1.03, "AP"))
    said: list[tuple[float, float, str]] = []
    for style, title, values in ap:
        drawn.marks(known.tolist(), values.tolist(), style.marker, f'fill="{style.colour}" fill-opacity=".65"', 4.5)
        words = f"{title}: " if ap[1:] else ""
        for name, yes, value in zip(names, known.tolist(), values.tolist(), strict=True):
            if value == value:
                said.append((yes, value, f"{name}, {words}AP {value:.3f}, {yes:,} known yes"))
    return drawn.drawing(said)


def _linear_then_log(value: float) -> float:
    """Steps of one up to 1, then one for each power of ten."""
    return value if value <= 1 else 1 + math.log10(value)


def cells(z: Ternary, height: int = 12, width: int = 24) -> npt.NDArray[np.uint8]:
    """z [R, C] as pixels [R * height, C * width, 4], transparent where nothing is drawn."""
    glyphs = np.zeros((3, height, width, 4), np.uint8)
    glyphs[0, 4:-4, 1:-1] = _rgba(NO)
    glyphs[1, 5:-5, 11:-11] = _rgba(UNKNOWN)
    glyphs[2, 1:-1, 1:-1] = _rgba(YES)
    rows, columns = z.shape
    return glyphs[z + 1].transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, 4)


def _rgba(colour: str) -> tuple[int, int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16), 255


def plain(words: str, most: int = 22) -> str:
    """Words that cannot break a drawing: no controls, no marks that turn the direction, not too long."""
    kept = "".join(c for c in " ".join(words.split()) if not unicodedata.category(c).startswith("C"))
    return kept if len(kept) <= most else kept[: most - 1] + "…"
