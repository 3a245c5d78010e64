"""The report in one PNG, as the front page of a project shows it: what is known, mAP of the runs, a few pictures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from partly.labels import Ternary
from partly.report import drawings, plots

_TITLE = 10.5


def overview(
    z: Ternary,
    names: Sequence[str],
    title: str,
    bars: Sequence[tuple[plots.Look, str, float]],
    pictures: Sequence[tuple[npt.NDArray[np.uint8], Sequence[str]]],
    predictor: str,
) -> bytes:
    """PNG for a front page: the label matrix, mAP of the runs, and a few pictures with what is predicted."""
    with drawings.canvas(12, 4.8, dpi=130) as figure:
        cast(Any, figure.get_layout_engine()).set(w_pad=0.1, h_pad=0.08)
        left, right = cast(Any, figure.subfigures(1, 2, width_ratios=(1, 1.15)))
        _draw_matrix(left, z, names, title)
        top, bottom = right.subfigures(2, 1, height_ratios=(1, 1.15)) if pictures else (right, None)
        _draw_bars(top, bars)
        if bottom is not None:
            _draw_pictures(bottom, pictures)
            bottom.suptitle(f"Predicted by {plots.plain(predictor)}; ✗ is wrong", fontsize=_TITLE)
        return _raster(figure)


def _draw_matrix(figure: Any, z: Ternary, names: Sequence[str], title: str) -> None:
    axes = figure.subplots()
    axes.imshow(plots.cells(z), extent=(0, z.shape[1], z.shape[0], 0), aspect="auto", interpolation="antialiased")
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(names)) + 0.5, [plots.plain(name) for name in names], rotation=90, fontsize=8.5)
    axes.set_yticks([])
    axes.set_ylabel("items")
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    axes.grid(visible=False)
    keys = [Patch(color=plots.YES, label="yes"), Line2D([], [], color=plots.NO, linewidth=4, label="no")]
    keys.append(Line2D([], [], color=plots.UNKNOWN, marker=".", markersize=4, linestyle="none", label="unknown"))
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(plots.plain(title, 60), fontsize=_TITLE)


def _draw_bars(figure: Any, bars: Sequence[tuple[plots.Look, str, float]]) -> None:
    axes = figure.subplots()
    for place, (style, _, score) in enumerate(bars):
        width, words = (0.0, "undefined") if np.isnan(score) else (score, f"{score:.3f}")
        face, hatch = ("none", "////") if style.dashed else (style.colour, None)
        axes.barh(place, width, height=0.62, facecolor=face, edgecolor=style.colour, hatch=hatch)
        axes.text(width + 0.01, place, words, va="center", fontsize=_TITLE)
    axes.set_yticks(range(len(bars)), [plots.plain(title, 30) for _, title, _ in bars], fontsize=_TITLE)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.1)
    axes.set_xticks(np.linspace(0, 1, 6))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    figure.suptitle("mAP on the evaluation items", fontsize=_TITLE)


def _draw_pictures(figure: Any, pictures: Sequence[tuple[npt.NDArray[np.uint8], Sequence[str]]]) -> None:
    for axes, (picture, names) in zip(np.ravel(figure.subplots(1, len(pictures))), pictures, strict=True):
        axes.imshow(picture.squeeze(), cmap="gray", interpolation="nearest")
        axes.set_axis_off()
        axes.set_anchor("N")
        words = "\n".join(plots.plain(name, 16) for name in names[:5])
        axes.text(0.5, -0.06, words, transform=axes.transAxes, ha="center", va="top", fontsize=8.5)


def _raster(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor="white", metadata={"Software": None})
    return file.getvalue()
