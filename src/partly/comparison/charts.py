"""Pictures of a comparison, as SVG in the look of the other reports. Names in them are plain and escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from partly.comparison.groups import Block, Row
from partly.comparison.statistics import Ranking
from partly.report import figures, plots
from partly.report.chart import INK, Drawing
from partly.report.figures import Tooltip
from partly.report.plots import Style

ROW = 0.24  # inches a method
NAME = 24  # letters of a name, at most
OUTSIDE = ("<", ">")  # marks at the ends of an axis, of what lies below and above it
FAR = 10.0  # times the median distance from the median: what is farther does not stretch an axis
NEAR = 0.02  # of mAP: distances below are not told apart by that


def looks(blocks: Iterable[Block]) -> dict[str, Style]:
    """How each method is drawn, in every picture of a page."""
    kinds = {row.name: row.kind for block in blocks for row in block.rows if row.kind != "full"}
    return {
        name: plots.choose_style(place, kind == "oracle") for place, (name, kind) in enumerate(sorted(kinds.items()))
    }


def ranks(ranking: Ranking, styles: Mapping[str, Style]) -> Drawing:
    """Mean ranks, the leader on top and bold; ≈ marks those that are not shown to be worse."""
    with figures.new_figure(4.4, 0.6 + ROW * len(ranking.names)) as figure:
        axes = figure.subplots()
        for place, (name, rank) in enumerate(zip(ranking.names, ranking.ranks, strict=True)):
            axes.plot([1, rank], [place, place], color=styles[name].color, lw=1.5, alpha=0.5)
            axes.plot(rank, place, styles[name].marker, color=styles[name].color, ms=8, clip_on=False)
        _label(axes, ranking.names, [f"{rank:.2f}" for rank in ranking.ranks], ranking.leader, ranking.level)
        axes.set_xlim(0.9, max(2, len(ranking.names)) + 0.1)
        axes.set_xticks(range(1, 1 + max(2, len(ranking.names)), 1 + len(ranking.names) // 12))
        axes.set_xlabel("mean rank (1 is best)")
        ranks = zip(ranking.names, ranking.ranks, strict=True)
        return figures.to_drawing(
            figure, [(axes, r, i, f"{name}: mean rank {r:.2f}") for i, (name, r) in enumerate(ranks)]
        )


def panel(block: Block, order: Sequence[str], styles: Mapping[str, Style]) -> Drawing:
    """mAP with its interval of every method in one block; dashed: all labels known, dotted: unknown taken for no."""
    rows = _ordered(block, order)
    with figures.new_figure(4.6, 0.5 + ROW * len(rows)) as figure:
        return figures.to_drawing(figure, _draw(figure.subplots(), block, rows, styles))


def scenario(blocks: Sequence[Block], order: Sequence[str], styles: Mapping[str, Style], columns: int = 2) -> bytes:
    """The same for several blocks in one picture."""
    rows = [_ordered(block, order) for block in blocks]
    lines = -(-len(blocks) // columns)
    with figures.new_figure(4.6 * columns, lines * (0.75 + ROW * max(map(len, rows)))) as figure:
        grid = np.ravel(figure.subplots(lines, columns, squeeze=False))
        for axes, block, shown in zip(grid, blocks, rows, strict=False):
            _draw(axes, block, shown, styles)
            axes.set_title(plots.shorten(block.title, 60), fontsize=10.5)
        for axes in grid[len(blocks) :]:
            axes.set_axis_off()
        return figures.to_svg(figure)


def _ordered(block: Block, order: Sequence[str]) -> list[Row]:
    """The methods of a block that have a score, in the order of all the pictures."""
    places = {name: place for place, name in enumerate(order)}
    rows = [row for row in block.rows if row.kind != "full" and row.scores()]
    return sorted(rows, key=lambda row: places.get(row.name, len(places)))


def _draw(axes: Any, block: Block, rows: Sequence[Row], styles: Mapping[str, Style]) -> list[Tooltip]:
    means = [found for row in rows if (found := row.mean())]
    known = [*means, *([full] if block.full and (full := block.full.mean()) else [])]
    low, high = robust_ends([found.value for found in known], [found.margin or 0.0 for found in known])
    for end, colour, dash in ((block.full, plots.PRIVILEGED, (0, (5, 3))), (block.naive, INK, (0, (1, 2)))):
        if end and (value := end.mean()) and low <= value.value <= high:
            axes.axvline(value.value, color=colour, linestyle=dash, lw=1.3, zorder=1)
    words: list[str] = []
    marks: list[Tooltip] = []
    for place, (row, found) in enumerate(zip(rows, means, strict=True)):
        margin, style = found.margin or 0.0, styles[row.name]
        inside = low <= found.value <= high
        shown, shape = min(max(found.value, low), high), style.marker if inside else OUTSIDE[found.value > high]
        if inside:
            axes.plot([found.value - margin, found.value + margin], [place, place], color=style.color, lw=2.5)
        axes.plot(shown, place, shape, color=style.color, ms=7 if inside else 9, clip_on=False)
        words.append(f"{found.value:.3f}" + ("" if found.margin is None else f" ±{found.margin:.3f}"))
        marks.append((axes, shown, place, f"{row.name}: {words[-1]}" + ("" if inside else ", outside of the axis")))
    best = next((row.name for row in rows if row.best), "")
    _label(axes, [row.name for row in rows], words, best, [row.name for row in rows if row.level])
    axes.set_xlim(low, high)
    axes.locator_params(axis="x", nbins=4)
    return marks


def robust_ends(values: Sequence[float], margins: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis for most of these values and their intervals: a value that is far from the others, or an
    interval that is wider than all values together, does not stretch it."""
    if not values:
        return 0.0, 1.0
    middle = float(np.median(values))
    reach = FAR * max(float(np.median(np.abs(np.subtract(values, middle)))), NEAR)
    inside = [(v, m) for v, m in zip(values, margins, strict=True) if abs(v - middle) <= reach]
    least, most = min(v for v, _ in inside), max(v for v, _ in inside)
    beyond = max(most - least, NEAR)
    low = max(least - beyond, min(v - m for v, m in inside))
    high = min(most + beyond, max(v + m for v, m in inside))
    room = max(0.06 * (high - low), 0.1 * NEAR)
    return low - room, high + room


def _label(axes: Any, names: Sequence[str], values: Sequence[str], leader: str, level: Sequence[str]) -> None:
    """A name on the left and a value on the right of each row, from top to bottom."""
    axes.set_yticks(range(len(names)), [plots.shorten(name, NAME) for name in names])
    for tick, name, place, value in zip(axes.get_yticklabels(), names, range(len(names)), values, strict=True):
        weight = "bold" if name == leader else "normal"
        tick.set_fontweight(weight)
        at: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "xytext": (7, 0), "textcoords": "offset points"}
        axes.annotate(f"{value} ≈" if name in level else value, (1, place), **at, va="center", fontweight=weight)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
