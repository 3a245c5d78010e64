"""Pictures by matplotlib, for all that is no small chart of a page: in the same look, in the reader's scheme."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from partly.report.chart import INK, SCHEME, Drawing
from partly.report.plots import UNKNOWN, Curve

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

Mark = tuple[Any, float, float, str]  # axes, a place in them, and what is said of it


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
    return text.replace("<defs>", f"{SCHEME}<defs>", 1).encode()


def drawing(figure: Figure, marks: Iterable[Mark] = ()) -> Drawing:
    """A figure as SVG, with words for marks in its axes."""
    image = svg(figure)  # first, since drawing decides where the axes are
    places = {axes: axes.transData - figure.transFigure for axes in figure.axes}
    points = []
    for axes, x, y, words in marks:
        across, up = places[axes].transform((x, y))
        points.append((round(float(across), 4), round(1 - float(up), 4), words))
    return Drawing(image, tuple(points))


def progress(panels: Mapping[str, Mapping[str, Curve]]) -> bytes:
    """SVG of scores over the answers: a panel per score, in it a line per arm, by its title."""
    with canvas(3.4 * len(panels), 2.9) as figure:
        lines: dict[str, Line2D] = {}
        for axes, (name, arms) in zip(np.ravel(figure.subplots(1, len(panels))), panels.items(), strict=True):
            for title, curve in arms.items():
                dash = (0, (4, 2)) if curve.look.dashed else "solid"
                (line,) = axes.plot(curve.x, curve.y, color=curve.look.colour, linestyle=dash, lw=1.4)
                line.set(marker=curve.look.marker, markersize=4, markevery=max(1, len(curve.x) // 10))
                lines.setdefault(title, line)
            axes.set(title=name, xlabel="answers")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines), frameon=False)
        return svg(figure)
