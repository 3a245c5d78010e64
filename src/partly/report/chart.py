"""Small charts as SVG that follows the reader's light or dark scheme.

Written by hand, because importing matplotlib takes longer than a short training. Sizes are in points. No text from the
data goes into an SVG: the page around it escapes and sets all names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

INK, GRAY = "#1b2026", "#8b949e"
SCHEME = f"<style>svg{{color:{INK}}}@media(prefers-color-scheme:dark){{svg{{color:#d7dde4}}}}</style>"
SHAPES = {  # of size 1, centered at 0
    "o": "M-.5 0a.5 .5 0 1 0 1 0a.5 .5 0 1 0-1 0z",
    "s": "M-.5-.5h1v1h-1z",
    "^": "M0-.5L.5 .5h-1z",
    "D": "M0-.7L.7 0 0 .7-.7 0z",
    "v": "M0 .5L.5-.5h-1z",
}
FONT_SIZE = 9.5  # a digit is about 0.6 times as wide
BOTTOM, TOP, RIGHT = 33, 8, 10  # margins; the left one depends on the tick labels
MAX_TICK_LENGTH = 8  # characters; longer numbers are written as powers of ten


@dataclass(frozen=True)
class Drawing:
    """A picture, and the tooltips of its points."""

    svg: bytes
    points: tuple[tuple[float, float, str], ...] = ()  # share of the width, share of the height from the top, text


@dataclass(frozen=True)
class Axis:
    """One axis: its ends, its tick labels, its name, and a monotone scale."""

    low: float
    high: float
    ticks: Mapping[float, str]
    name: str = ""
    scale: Callable[[float], float] = float

    def position(self, value: float) -> float:
        """Position of a value between the ends, from 0 to 1."""
        low, high, scaled = map(self.scale, (self.low, self.high, value))
        return (scaled - low) / (high - low)


def linear_axis(low: float, high: float, name: str = "", max_ticks: int = 9, whole: bool = False) -> Axis:
    """Return an axis with ticks at round distances; whole: at whole numbers only."""
    power = max(math.floor(math.log10((high - low) / max_ticks)), 0 if whole else -math.inf)
    step = next(
        step
        for step in (factor * 10.0**exponent for exponent in (power, power + 1) for factor in (1, 2, 2.5, 5))
        if (high - low) / step <= max_ticks and not (whole and step % 1)
    )
    digits = next(digits for digits in range(400) if math.isclose(round(step, digits), step))
    values = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return Axis(low, high, {value: _format_tick(value, digits) for value in values}, name)


def pad_range(values: Iterable[float]) -> tuple[float, float]:
    """Return the smallest and the largest finite value, with some padding."""
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    padding = 0.05 * ((high - low) or abs(high) or 1)
    return low - padding, high + padding


def _format_tick(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text if len(text) <= MAX_TICK_LENGTH else f"{value:.4g}"


class Chart:
    """Lines and marks over two axes, drawn in the order in which they are added."""

    def __init__(self, width: float, height: float, x_axis: Axis, y_axis: Axis) -> None:
        self.width, self.height, self.x_axis, self.y_axis = width, height, x_axis, y_axis
        longest_tick = max(map(len, y_axis.ticks.values()), default=0)
        self.left = 10 + 0.6 * FONT_SIZE * longest_tick + 1.5 * FONT_SIZE * bool(y_axis.name)
        self._parts: list[str] = []

    def to_picture(self, x: float, y: float) -> tuple[float, float]:
        """Return the distance of a point from the left and from the top."""
        width, height = self.width - RIGHT - self.left, self.height - BOTTOM - TOP
        return self.left + width * self.x_axis.position(x), TOP + height * (1 - self.y_axis.position(y))

    def add_line(
        self, x: Sequence[float], y: Sequence[float], color: str, dashes: str = "none", width: float = 1.5
    ) -> None:
        """Draw a line through all defined points, with gaps at the others."""
        runs = groupby(zip(x, y, strict=True), lambda point: math.isfinite(point[1]))
        paths = ("M" + "L".join(self._locate(*point) for point in points) for defined, points in runs if defined)
        style = f'fill="none" stroke="{color}" stroke-width="{width}" stroke-dasharray="{dashes}"'
        self._parts.append(f'<path d="{"".join(paths)}" {style}/>')

    def add_marks(
        self, x: Sequence[float], y: Sequence[float], shape: str, style: str, size: float | Sequence[float]
    ) -> None:
        """Draw a mark at each defined point. style: SVG attributes; size: one for all, or one for each."""
        sizes = size if isinstance(size, Sequence) else [size] * len(x)
        marks = [
            f'<use href="#{shape}" transform="translate({self._locate(a, b)}) scale({s:.3g})"/>'
            for a, b, s in zip(x, y, sizes, strict=True)
            if math.isfinite(b)
        ]
        self._parts.append(f"<g {style}>{''.join(marks)}</g>")

    def to_drawing(self, tooltips: Iterable[tuple[float, float, str]] = ()) -> Drawing:
        """Return the picture with tooltips at these points."""
        points = []
        for x, y, text in tooltips:
            right, down = self.to_picture(x, y)
            points.append((round(right / self.width, 4), round(down / self.height, 4), text))
        return Drawing(self.to_svg(), tuple(points))

    def to_svg(self) -> bytes:
        size = f'width="{self.width}pt" height="{self.height}pt" viewBox="0 0 {self.width} {self.height}"'
        shapes = "".join(f'<path id="{name}" d="{path}"/>' for name, path in SHAPES.items())
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} stroke-linejoin="round">{SCHEME}<defs>{shapes}</defs>'
        return "\n".join([head, *self._axes(), *self._parts, "</svg>"]).encode()

    def _axes(self) -> Iterable[str]:
        left, right, top, bottom = self.left, self.width - RIGHT, TOP, self.height - BOTTOM
        xs = {self.to_picture(value, self.y_axis.low)[0]: text for value, text in self.x_axis.ticks.items()}
        ys = {self.to_picture(self.x_axis.low, value)[1]: text for value, text in self.y_axis.ticks.items()}
        grid = [f"M{x:.4g} {bottom}V{top}" for x in xs] + [f"M{left:.4g} {y:.4g}H{right}" for y in ys]
        ticks = [f"M{x:.4g} {bottom}v3.5" for x in xs] + [f"M{left:.4g} {y:.4g}h-3.5" for y in ys]
        yield f'<path d="{"".join(grid)}" stroke="{GRAY}" stroke-opacity=".25" stroke-width=".6"/>'
        frame = f"M{left:.4g} {top}V{bottom}H{right}{''.join(ticks)}"
        yield f'<path d="{frame}" fill="none" stroke="currentColor" stroke-width=".7"/>'
        font = f'font-family="system-ui, sans-serif" font-size="{FONT_SIZE}"'
        yield f'<g fill="currentColor" {font} text-anchor="middle">'
        yield from (f'<text x="{x:.4g}" y="{bottom + 14}">{text}</text>' for x, text in xs.items())
        yield from (f'<text x="{left - 7:.4g}" y="{y + 3.5:.4g}" text-anchor="end">{t}</text>' for y, t in ys.items())
        yield f'<text x="{(left + right) / 2:.4g}" y="{bottom + 28}">{self.x_axis.name}</text>'
        yield f'<text transform="translate(11 {(top + bottom) / 2}) rotate(-90)">{self.y_axis.name}</text></g>'

    def _locate(self, x: float, y: float) -> str:
        right, down = self.to_picture(x, y)
        return f"{right:.2f} {down:.2f}"
