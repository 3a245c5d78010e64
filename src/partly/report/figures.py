"""Figures drawn by matplotlib, for everything but the small charts of a report; in the same style and color scheme."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from partly.labels import Ternary
from partly.report import plots
from partly.report.chart import INK, SCHEME, Drawing

TITLE_SIZE = 10.5
MAX_PREDICTIONS = 5  # below an image
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "partly",  # the same figure gives the same bytes
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
    "grid.color": plots.UNKNOWN,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
}

Tooltip = tuple[Any, float, float, str]  # axes, x, y, text


@contextmanager
def new_figure(width: float, height: float, dpi: float = 100) -> Iterator[Figure]:
    """Yield a figure that is independent of the caller's matplotlib settings, and leaves them unchanged."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        # Characters that the font lacks are drawn as boxes; that is no reason to fail.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield Figure(figsize=(width, height), dpi=dpi, layout="constrained")


def to_svg(figure: Figure) -> bytes:
    """Return SVG that follows the reader's color scheme; the same figure gives the same bytes."""
    file = io.StringIO()
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(file, format="svg", transparent=True, metadata=no_metadata)
    text = file.getvalue()
    text = text[text.index("<svg") :]  # without the prologue, which names an external address
    text = text.replace(INK, "currentColor").replace("'DejaVu Sans'", "system-ui")
    return text.replace("<defs>", f"{SCHEME}<defs>", 1).encode()


def to_drawing(figure: Figure, tooltips: Iterable[Tooltip] = ()) -> Drawing:
    """Return a figure as SVG with tooltips."""
    svg = to_svg(figure)  # first, because drawing sets the positions of the axes
    transforms = {axes: axes.transData - figure.transFigure for axes in figure.axes}
    points = []
    for axes, x, y, text in tooltips:
        across, up = transforms[axes].transform((x, y))
        points.append((round(float(across), 4), round(1 - float(up), 4), text))
    return Drawing(svg, tuple(points))


def draw_progress(panels: Mapping[str, Mapping[str, plots.Curve]]) -> bytes:
    """SVG of scores over the number of answers: a panel per score, a line per arm."""
    with new_figure(3.4 * len(panels), 2.9) as figure:
        lines: dict[str, Line2D] = {}
        for axes, (name, arms) in zip(np.ravel(figure.subplots(1, len(panels))), panels.items(), strict=True):
            for title, curve in arms.items():
                dash = (0, (4, 2)) if curve.style.dashed else "solid"
                (line,) = axes.plot(curve.x, curve.y, color=curve.style.color, linestyle=dash, lw=1.4)
                line.set(marker=curve.style.marker, markersize=4, markevery=max(1, len(curve.x) // 10))
                lines.setdefault(title, line)
            axes.set(title=name, xlabel="answers")
            axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True, min_n_ticks=1))
        figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines), frameon=False)
        return to_svg(figure)


def draw_overview(
    z: Ternary,
    names: Sequence[str],
    title: str,
    bars: Sequence[tuple[plots.Style, str, float]],
    images: Sequence[tuple[npt.NDArray[np.uint8], Sequence[str]]],
    predictor: str,
) -> bytes:
    """PNG of a report: the label matrix, mAP of the runs, and a few images with their predictions."""
    with new_figure(12, 4.8, dpi=130) as figure:
        cast(Any, figure.get_layout_engine()).set(w_pad=0.1, h_pad=0.08)
        left, right = cast(Any, figure.subfigures(1, 2, width_ratios=(1, 1.15)))
        _draw_matrix(left, z, names, title)
        top, bottom = right.subfigures(2, 1, height_ratios=(1, 1.15)) if images else (right, None)
        _draw_bars(top, bars)
        if bottom is not None:
            _draw_images(bottom, images)
            bottom.suptitle(f"Predicted by {plots.shorten(predictor)} (✗: wrong)", fontsize=TITLE_SIZE)
        file = io.BytesIO()
        figure.savefig(file, format="png", facecolor="white", metadata={"Software": None})
        return file.getvalue()


def _draw_matrix(figure: Any, z: Ternary, names: Sequence[str], title: str) -> None:
    axes = figure.subplots()
    extent = (0, z.shape[1], z.shape[0], 0)
    axes.imshow(plots.matrix_pixels(z), extent=extent, aspect="auto", interpolation="antialiased")
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(names)) + 0.5, [plots.shorten(name) for name in names], rotation=90, fontsize=8.5)
    axes.set_yticks([])
    axes.set_ylabel("items")
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    axes.grid(visible=False)
    keys = [Patch(color=plots.YES, label="yes"), Line2D([], [], color=plots.NO, linewidth=4, label="no")]
    keys.append(Line2D([], [], color=plots.UNKNOWN, marker=".", markersize=4, linestyle="none", label="unknown"))
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(plots.shorten(title, 60), fontsize=TITLE_SIZE)


def _draw_bars(figure: Any, bars: Sequence[tuple[plots.Style, str, float]]) -> None:
    axes = figure.subplots()
    for place, (style, _, score) in enumerate(bars):
        width, text = (0.0, "undefined") if np.isnan(score) else (score, f"{score:.3f}")
        face, hatch = ("none", "////") if style.dashed else (style.color, None)
        axes.barh(place, width, height=0.62, facecolor=face, edgecolor=style.color, hatch=hatch)
        axes.text(width + 0.01, place, text, va="center", fontsize=TITLE_SIZE)
    axes.set_yticks(range(len(bars)), [plots.shorten(title, 30) for _, title, _ in bars], fontsize=TITLE_SIZE)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    figure.suptitle("mAP on the evaluation items", fontsize=TITLE_SIZE)


def _draw_images(figure: Any, images: Sequence[tuple[npt.NDArray[np.uint8], Sequence[str]]]) -> None:
    for axes, (pixels, names) in zip(np.ravel(figure.subplots(1, len(images))), images, strict=True):
        axes.imshow(pixels.squeeze(), cmap="gray", interpolation="nearest")
        axes.set_axis_off()
        axes.set_anchor("N")
        text = "\n".join(plots.shorten(name, 16) for name in names[:MAX_PREDICTIONS])
        axes.text(0.5, -0.06, text, transform=axes.transAxes, ha="center", va="top", fontsize=8.5)
