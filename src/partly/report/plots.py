"""Pictures of the report, as bytes: SVG that follows the reader's light or dark scheme, and PNG.

No text from the data goes into an SVG: names are set by the page around it, which escapes them. Colours are
from palettes made for colour-blind readers, and nothing is told by colour alone: yes, no and unknown differ
in shape, runs in marker and dash.
"""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from PIL import Image  # matplotlib brings it along

from partly.labels import Ternary

INK = "#1b2026"  # in an SVG replaced by the colour of the reader's scheme
YES, NO, UNKNOWN = "#2f7fd0", "#e08a1e", "#8b949e"
COLOURS = ("#b5478f", "#12967a", "#a68400", "#5a6bd8", "#c7563a", "#3d94b0")
PRIVILEGED = "#808893"
MARKERS = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"))
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "partly",  # the same picture gives the same bytes
    "svg.fonttype": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.parse_math": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": UNKNOWN,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
}
_SCHEME = f"<style>svg{{color:{INK}}}@media(prefers-color-scheme:dark){{svg{{color:#d7dde4}}}}</style>"


Mark = tuple[Any, float, float, str]  # axes, a place in them, and what is said of it


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


@dataclass(frozen=True)
class Drawing:
    """A picture, and what the page says where somebody points at it."""

    svg: bytes
    points: tuple[tuple[float, float, str], ...] = ()  # share of the width, share of the height from the top, words


def matrix(z: Ternary) -> bytes:
    """PNG of labels [R, C]: a full cell is yes, a bar no, a dot unknown."""
    return _png(Image.fromarray(cells(z), "RGBA"))


def curves(panel: Sequence[Curve]) -> Drawing:
    """A number over the epochs, a line per run, a ring around the epoch that was kept."""
    with canvas(4.6, 2.7) as figure:
        axes = figure.subplots()
        for curve in panel:
            dash = (0, (4, 2)) if curve.look.dashed else "solid"
            (line,) = axes.plot(curve.x, curve.y, color=curve.look.colour, linestyle=dash)
            line.set(marker=curve.look.marker, markersize=3.5, markevery=max(1, len(curve.x) // 8))
            if curve.best is not None and curve.best in curve.x:
                y = curve.y[curve.x.index(curve.best)]
                axes.plot(curve.best, y, "o", ms=11, mfc="none", mec=curve.look.colour, mew=1.6)
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
        axes.set_xlim(0.5, max(max(curve.x) for curve in panel) + 0.5)
        return drawing(figure, [mark for curve in panel for mark in _marks(axes, curve, curve.name, "epoch")])


def progress(panels: Mapping[str, Mapping[str, Curve]]) -> bytes:
    """SVG of scores over the answers: a panel per score, in it a line per arm, by its title."""
    with canvas(3.4 * len(panels), 2.9) as figure:
        lines: dict[str, Line2D] = {}
        for axes, (name, arms) in zip(np.ravel(figure.subplots(1, len(panels))), panels.items(), strict=True):
            lines = _over_answers(axes, arms) | lines
            axes.set_title(name)
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines), frameon=False)
        return svg(figure)


def over_answers(arms: Mapping[str, Curve]) -> Drawing:
    """One such panel by itself."""
    with canvas(4.6, 2.7) as figure:
        axes = figure.subplots()
        _over_answers(axes, arms)
        return drawing(
            figure, [mark for title, curve in arms.items() for mark in _marks(axes, curve, title, "answers")]
        )


def _over_answers(axes: Any, arms: Mapping[str, Curve]) -> dict[str, Line2D]:
    lines = {}
    for title, curve in arms.items():
        dash = (0, (4, 2)) if curve.look.dashed else "solid"
        (line,) = axes.plot(curve.x, curve.y, color=curve.look.colour, linestyle=dash, lw=1.4)
        line.set(marker=curve.look.marker, markersize=4, markevery=max(1, len(curve.x) // 10))
        lines[title] = line
    axes.set_xlabel("answers")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
    return lines


def _marks(axes: Any, curve: Curve, name: str, what: str) -> Iterator[Mark]:
    """What is said of each point of a curve."""
    for x, y in zip(curve.x, curve.y, strict=True):
        yield axes, x, y, f"{name}, {what} {x:,}: {y:.4g}".removeprefix(", ")


def scatter(names: Sequence[str], known: npt.NDArray[Any], ap: Sequence[tuple[Look, str, npt.NDArray[Any]]]) -> Drawing:
    """The AP of labels over their number of known yes, [L] each; runs with how they are drawn and their titles. Small,
    so that it can be read on a phone."""
    with canvas(5.4, 3.2) as figure:
        axes = figure.subplots()
        marks: list[Mark] = []
        for style, title, values in ap:
            axes.plot(known, values, style.marker, color=style.colour, ms=4.5, alpha=0.65, mew=0)
            defined = np.flatnonzero(~np.isnan(values))
            words = f"{title}: " if ap[1:] else ""
            marks += [
                (axes, known[j], values[j], f"{names[j]}, {words}AP {values[j]:.3f}, {known[j]:,} known yes")
                for j in defined.tolist()
            ]
        axes.set_xscale("symlog", linthresh=1)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlim(left=-0.1)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("known yes")
        axes.set_ylabel("AP")
        return drawing(figure, marks)


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


# ---------------------------------------------------------------- figures and bytes


@contextmanager
def canvas(width: float, height: float, dpi: float = 100) -> Iterator[Figure]:
    """A figure of its own, untouched by the caller's matplotlib settings, which are left as they were."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in letters that the font lacks is drawn as boxes; that is no reason to fail.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield Figure(figsize=(width, height), dpi=dpi, layout="constrained")


def svg(figure: Figure) -> bytes:
    """The drawing in the colours of the reader's scheme; the same figure gives the same bytes."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    text = file.getvalue()
    text = text[text.index("<svg") :]  # without the prologue, which names an outside address
    text = text.replace(INK, "currentColor").replace("'DejaVu Sans'", "system-ui")
    return text.replace("<defs>", f"{_SCHEME}<defs>", 1).encode()


def drawing(figure: Figure, marks: Iterable[Mark] = ()) -> Drawing:
    """A figure as SVG, with words for marks in its axes."""
    image = svg(figure)  # first, since drawing decides where the axes are
    places = {axes: axes.transData - figure.transFigure for axes in figure.axes}
    points = []
    for axes, x, y, words in marks:
        across, up = places[axes].transform((x, y))
        points.append((round(float(across), 4), round(1 - float(up), 4), words))
    return Drawing(image, tuple(points))


def _png(image: Any) -> bytes:
    file = io.BytesIO()
    cast(Image.Image, image).save(file, "PNG", optimize=True)
    return file.getvalue()
