"""Plots of the report: charts as SVG, and the label matrix as PNG.

Colors come from color-blind safe palettes, and nothing depends on color alone: yes, no and unknown differ in shape,
runs in marker and dash.
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
from PIL import Image  # matplotlib depends on it

from partly.labels import Ternary
from partly.report.chart import GRAY, Axis, Chart, Drawing, linear_axis, pad_range

YES, NO, UNKNOWN = "#2f7fd0", "#e08a1e", GRAY
COLORS = ("#b5478f", "#12967a", "#a68400", "#5a6bd8", "#c7563a", "#3d94b0")
UPPER_BOUND_COLOR = "#808893"
MARKERS = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"))
DASHES = "6 3"


@dataclass(frozen=True)
class Style:
    """Color and marker of a run, the same in all plots."""

    color: str
    marker: str
    symbol: str  # the marker as a character
    dashed: bool


def choose_style(position: int, privileged: bool = False) -> Style:
    marker, symbol = MARKERS[position % len(MARKERS)]
    return Style(UPPER_BOUND_COLOR if privileged else COLORS[position % len(COLORS)], marker, symbol, privileged)


@dataclass(frozen=True)
class Curve:
    """One run in one plot: a number per epoch, and the epoch that was kept, if one was chosen."""

    style: Style
    x: Sequence[int]
    y: Sequence[float]
    best: int | None = None
    name: str = ""  # in tooltips


def draw_matrix(z: Ternary) -> bytes:
    """PNG of labels [R, C]: a full cell is yes, a bar no, a dot unknown."""
    file = io.BytesIO()
    Image.fromarray(matrix_pixels(z), "RGBA").save(file, "PNG", optimize=True)
    return file.getvalue()


def draw_curves(curves: Sequence[Curve]) -> Drawing:
    """A number over the epochs, a line per run, and a ring around the epoch that was kept."""
    last = max(max(curve.x) for curve in curves)
    chart = _draw_lines(linear_axis(0.5, last + 0.5, "epoch", max_ticks=8, whole=True), curves)
    for curve in curves:
        if curve.best is not None and curve.best in curve.x:
            point = [curve.best], [curve.y[curve.x.index(curve.best)]]
            chart.add_marks(*point, "o", f'fill="none" stroke="{curve.style.color}" stroke-width=".145"', 11)
    return chart.to_drawing(tooltip for curve in curves for tooltip in _tooltips(curve, "epoch"))


def draw_over_answers(arms: Mapping[str, Curve]) -> Drawing:
    """A score over the number of answers, a line per arm."""
    curves = [replace(curve, name=title) for title, curve in arms.items()]
    ends = pad_range(x for curve in curves for x in curve.x)
    chart = _draw_lines(linear_axis(*ends, "answers", max_ticks=5, whole=True), curves)
    return chart.to_drawing(tooltip for curve in curves for tooltip in _tooltips(curve, "answers"))


def _draw_lines(x_axis: Axis, curves: Sequence[Curve]) -> Chart:
    chart = Chart(331, 194, x_axis, linear_axis(*pad_range(y for curve in curves for y in curve.y)))
    for curve in curves:
        chart.add_line(curve.x, curve.y, curve.style.color, DASHES if curve.style.dashed else "none")
        marked = slice(None, None, max(1, len(curve.x) // 8))
        chart.add_marks(curve.x[marked], curve.y[marked], curve.style.marker, f'fill="{curve.style.color}"', 4.5)
    return chart


def _tooltips(curve: Curve, unit: str) -> Iterator[tuple[float, float, str]]:
    for x, y in zip(curve.x, curve.y, strict=True):
        yield x, y, f"{curve.name}, {unit} {x:,}: {y:.4g}".removeprefix(", ")


def draw_scatter(
    names: Sequence[str], known: npt.NDArray[Any], ap: Sequence[tuple[Style, str, npt.NDArray[Any]]]
) -> Drawing:
    """AP of labels over their number of known yes, [L] each, for runs with style and title."""
    most = max(1, int(known.max()))
    ticks = {0: "0"} | {10**k: f"{10**k:,}" for k in range(len(str(most)))}
    chart = Chart(
        389, 230, Axis(-0.1, 1.3 * most, ticks, "known yes", _linear_then_log), linear_axis(-0.03, 1.03, "AP")
    )
    tooltips: list[tuple[float, float, str]] = []
    for style, title, values in ap:
        fill = f'fill="{style.color}" fill-opacity=".65"'
        chart.add_marks(known.tolist(), values.tolist(), style.marker, fill, 4.5)
        run = f"{title}: " if ap[1:] else ""
        for name, yes, value in zip(names, known.tolist(), values.tolist(), strict=True):
            if value == value:
                tooltips.append((yes, value, f"{name}, {run}AP {value:.3f}, {yes:,} known yes"))
    return chart.to_drawing(tooltips)


def draw_teacher_weights(
    names: Sequence[str], known: npt.NDArray[Any], weights: npt.NDArray[Any], style: Style
) -> Drawing:
    """Weight of a teacher for each label over its number of known yes, [L] each."""
    most = max(1, int(known.max()))
    ticks = {0: "0"} | {10**k: f"{10**k:,}" for k in range(len(str(most)))}
    x_axis = Axis(-0.1, 1.3 * most, ticks, "known yes", _linear_then_log)
    chart = Chart(389, 230, x_axis, linear_axis(*pad_range([0.0, *weights.tolist()]), "weight of the teacher"))
    fill = f'fill="{style.color}" fill-opacity=".65"'
    chart.add_marks(known.tolist(), weights.tolist(), style.marker, fill, 4.5)
    points = zip(names, known.tolist(), weights.tolist(), strict=True)
    texts = ((yes, weight, f"{name}: weight {weight:.2f}, {yes:,} known yes") for name, yes, weight in points)
    return chart.to_drawing(texts)


def _linear_then_log(value: float) -> float:
    """Linear up to 1, then logarithmic."""
    return value if value <= 1 else 1 + math.log10(value)


def matrix_pixels(z: Ternary, height: int = 12, width: int = 24) -> npt.NDArray[np.uint8]:
    """Return z [R, C] as RGBA pixels [R * height, C * width, 4] on a transparent background."""
    glyphs = np.zeros((3, height, width, 4), np.uint8)
    glyphs[0, 4:-4, 1:-1] = _rgba(NO)
    glyphs[1, 5:-5, 11:-11] = _rgba(UNKNOWN)
    glyphs[2, 1:-1, 1:-1] = _rgba(YES)
    rows, columns = z.shape
    return glyphs[z + 1].transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, 4)


def _rgba(color: str) -> tuple[int, int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16), 255


def shorten(text: str, limit: int = 22) -> str:
    """Return text that is safe in a drawing: without control and direction characters, and not too long."""
    safe = "".join(c for c in " ".join(text.split()) if not unicodedata.category(c).startswith("C"))
    return safe if len(safe) <= limit else safe[: limit - 1] + "…"
