"""Lines and marks over two axes, as SVG that follows the reader's light or dark scheme.

Written by hand, since a page has a few small ones of them, and the library that draws all others takes longer to be
imported than a short training does. Sizes are in points. No text from the data goes into an SVG: names are set by the
page around it, which escapes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

INK, GREY = "#1b2026", "#8b949e"
SCHEME = f"<style>svg{{color:{INK}}}@media(prefers-color-scheme:dark){{svg{{color:#d7dde4}}}}</style>"
SHAPES = {  # of the size 1, around 0
    "o": "M-.5 0a.5 .5 0 1 0 1 0a.5 .5 0 1 0-1 0z",
    "s": "M-.5-.5h1v1h-1z",
    "^": "M0-.5L.5 .5h-1z",
    "D": "M0-.7L.7 0 0 .7-.7 0z",
    "v": "M0 .5L.5-.5h-1z",
}
LETTER = 9.5  # the size of the letters; a figure is about 0.6 times as wide
BOTTOM, TOP, RIGHT = 33, 8, 10  # around the axes; on the left it depends on the figures there
LONGEST = 8  # letters of a figure; longer ones are written as powers of ten


@dataclass(frozen=True)
class Drawing:
    """A picture, and what the page says where somebody points at it."""

    svg: bytes
    points: tuple[tuple[float, float, str], ...] = ()  # share of the width, share of the height from the top, words


@dataclass(frozen=True)
class Axis:
    """One side of a chart: its ends, the figures beside it, its name, and how values are spaced."""

    low: float
    high: float
    ticks: Mapping[float, str]
    name: str = ""
    spaced: Callable[[float], float] = float

    def share(self, value: float) -> float:
        """Where a value stands between the ends, 0 and 1."""
        low, high, here = map(self.spaced, (self.low, self.high, value))
        return (here - low) / (high - low)


def even(low: float, high: float, name: str = "", most: int = 9, whole: bool = False) -> Axis:
    """An axis with figures at round distances, of which there are at most so many; whole: only at whole numbers."""
    power = max(math.floor(math.log10((high - low) / most)), 0 if whole else -math.inf)
    step = next(
        step
        for step in (factor * 10.0**exponent for exponent in (power, power + 1) for factor in (1, 2, 2.5, 5))
        if (high - low) / step <= most and not (whole and step % 1)
    )
    digits = next(digits for digits in range(400) if math.isclose(round(step, digits), step))
    values = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return Axis(low, high, {value: _figure(value, digits) for value in values}, name)


def around(values: Iterable[float]) -> tuple[float, float]:
    """The ends of an axis that has all these values, with some room."""
    some = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(some), max(some)
    room = 0.05 * ((high - low) or abs(high) or 1)
    return low - room, high + room


def _figure(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text if len(text) <= LONGEST else f"{value:.4g}"


class Chart:
    """What is drawn over two axes, in the order in which it is asked for."""

    def __init__(self, width: float, height: float, across: Axis, up: Axis) -> None:
        self.width, self.height, self.across, self.up = width, height, across, up
        self.left = 10 + 0.6 * LETTER * max(map(len, up.ticks.values()), default=0) + 1.5 * LETTER * bool(up.name)
        self._parts: list[str] = []

    def place(self, x: float, y: float) -> tuple[float, float]:
        """A place in the picture, from the left and from the top."""
        wide, high = self.width - RIGHT - self.left, self.height - BOTTOM - TOP
        return self.left + wide * self.across.share(x), TOP + high * (1 - self.up.share(y))

    def line(
        self, x: Sequence[float], y: Sequence[float], colour: str, dashes: str = "none", width: float = 1.5
    ) -> None:
        """Through all points that are defined; what is not is a gap."""
        defined = groupby(zip(x, y, strict=True), lambda point: math.isfinite(point[1]))
        paths = ("M" + "L".join(_pair(self.place(*one)) for one in some) for there, some in defined if there)
        style = f'fill="none" stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dashes}"'
        self._parts.append(f'<path d="{"".join(paths)}" {style}/>')

    def marks(
        self, x: Sequence[float], y: Sequence[float], shape: str, style: str, size: float | Sequence[float]
    ) -> None:
        """A mark at each point that is defined. style: attributes of SVG, the colour; size: of all or of each."""
        sizes = size if isinstance(size, Sequence) else [size] * len(x)
        shown = [
            f'<use href="#{shape}" transform="translate({_pair(self.place(a, b))}) scale({s:.3g})"/>'
            for a, b, s in zip(x, y, sizes, strict=True)
            if math.isfinite(b)
        ]
        self._parts.append(f"<g {style}>{''.join(shown)}</g>")

    def drawing(self, said: Iterable[tuple[float, float, str]] = ()) -> Drawing:
        """The picture, with what is said of points in it."""
        points = []
        for x, y, words in said:
            right, down = self.place(x, y)
            points.append((round(right / self.width, 4), round(down / self.height, 4), words))
        return Drawing(self.svg(), tuple(points))

    def svg(self) -> bytes:
        size = f'width="{self.width}pt" height="{self.height}pt" viewBox="0 0 {self.width} {self.height}"'
        shapes = "".join(f'<path id="{name}" d="{path}"/>' for name, path in SHAPES.items())
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} stroke-linejoin="round">{SCHEME}<defs>{shapes}</defs>'
        return "\n".join([head, *self._axes(), *self._parts, "</svg>"]).encode()

    def _axes(self) -> Iterable[str]:
        left, right, top, bottom = self.left, self.width - RIGHT, TOP, self.height - BOTTOM
        across = {self.place(value, self.up.low)[0]: text for value, text in self.across.ticks.items()}
        up = {self.place(self.across.low, value)[1]: text for value, text in self.up.ticks.items()}
        grid = [f"M{x:.4g} {bottom}V{top}" for x in across] + [f"M{left:.4g} {y:.4g}H{right}" for y in up]
        ends = [f"M{x:.4g} {bottom}v3.5" for x in across] + [f"M{left:.4g} {y:.4g}h-3.5" for y in up]
        yield f'<path d="{"".join(grid)}" stroke="{GREY}" stroke-opacity=".25" stroke-width=".6"/>'
        frame = f"M{left:.4g} {top}V{bottom}H{right}{''.join(ends)}"
        yield f'<path d="{frame}" fill="none" stroke="currentColor" stroke-width=".7"/>'
        yield f'<g fill="currentColor" font-family="system-ui, sans-serif" font-size="{LETTER}" text-anchor="middle">'
        yield from (f'<text x="{x:.4g}" y="{bottom + 14}">{text}</text>' for x, text in across.items())
        yield from (f'<text x="{left - 7:.4g}" y="{y + 3.5:.4g}" text-anchor="end">{t}</text>' for y, t in up.items())
        yield f'<text x="{(left + right) / 2:.4g}" y="{bottom + 28}">{self.across.name}</text>'
        yield f'<text transform="translate(11 {(top + bottom) / 2}) rotate(-90)">{self.up.name}</text></g>'


def _pair(place: tuple[float, float]) -> str:
    return f"{place[0]:.2f} {place[1]:.2f}"
