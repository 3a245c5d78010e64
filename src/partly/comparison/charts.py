"""Charts of a comparison, as SVG in the style of the other reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from partly.comparison.groups import Group, Row
from partly.comparison.statistics import Ranking
from partly.report import figures, plots
from partly.report.chart import INK, Drawing
from partly.report.plots import Style

ROW_HEIGHT = 0.24  # inches
MAX_NAME_LENGTH = 24
OUTSIDE_MARKERS = ("<", ">")  # for values below and above the axis
MAX_DEVIATIONS = 10.0  # median absolute deviations from the median, beyond which a value does not stretch the axis
MIN_SPREAD = 0.02  # of mAP


def choose_styles(groups: Iterable[Group]) -> dict[str, Style]:
    """Choose the style of each method for all charts of a page."""
    kinds = {row.name: row.kind for group in groups for row in group.rows if row.kind != "full"}
    return {
        name: plots.choose_style(place, kind == "oracle") for place, (name, kind) in enumerate(sorted(kinds.items()))
    }


def draw_ranks(ranking: Ranking, styles: Mapping[str, Style]) -> Drawing:
    """Mean ranks, the leader on top and bold; ≈ marks ties."""
    count = len(ranking.names)
    with figures.new_figure(4.4, 0.6 + ROW_HEIGHT * count) as figure:
        axes = figure.subplots()
        tooltips = []
        for place, (name, rank) in enumerate(zip(ranking.names, ranking.ranks, strict=True)):
            axes.plot([1, rank], [place, place], color=styles[name].color, lw=1.5, alpha=0.5)
            axes.plot(rank, place, styles[name].marker, color=styles[name].color, ms=8, clip_on=False)
            tooltips.append((axes, rank, place, f"{name}: mean rank {rank:.2f}"))
        _label_rows(axes, ranking.names, [f"{rank:.2f}" for rank in ranking.ranks], ranking.leader, ranking.tied)
        axes.set_xlim(0.9, max(2, count) + 0.1)
        axes.set_xticks(range(1, 1 + max(2, count), 1 + count // 12))
        axes.set_xlabel("mean rank (1 is best)")
        return figures.to_drawing(figure, tooltips)


def draw_scores(group: Group, order: Sequence[str], styles: Mapping[str, Style]) -> Drawing:
    """mAP of every method in a group, with intervals; dashed: all labels known, dotted: unknown treated as no."""
    places = {name: place for place, name in enumerate(order)}
    rows = [row for row in group.rows if row.kind != "full" and row.scores()]
    rows.sort(key=lambda row: places.get(row.name, len(places)))
    with figures.new_figure(4.6, 0.5 + ROW_HEIGHT * len(rows)) as figure:
        return figures.to_drawing(figure, _draw_rows(figure.subplots(), group, rows, styles))


def _draw_rows(axes: Any, group: Group, rows: Sequence[Row], styles: Mapping[str, Style]) -> list[figures.Tooltip]:
    means = [value for row in rows if (value := row.mean())]
    full = group.full.mean() if group.full else None
    visible = [*means, full] if full else means
    low, high = robust_limits([value.value for value in visible], [value.margin or 0.0 for value in visible])
    for row, color, dash in ((group.full, plots.UPPER_BOUND_COLOR, (0, (5, 3))), (group.naive, INK, (0, (1, 2)))):
        if row and (value := row.mean()) and low <= value.value <= high:
            axes.axvline(value.value, color=color, linestyle=dash, lw=1.3, zorder=1)
    texts: list[str] = []
    tooltips: list[figures.Tooltip] = []
    for place, (row, value) in enumerate(zip(rows, means, strict=True)):
        margin, style = value.margin or 0.0, styles[row.name]
        inside = low <= value.value <= high
        x = min(max(value.value, low), high)
        marker = style.marker if inside else OUTSIDE_MARKERS[value.value > high]
        if inside:
            axes.plot([value.value - margin, value.value + margin], [place, place], color=style.color, lw=2.5)
        axes.plot(x, place, marker, color=style.color, ms=7 if inside else 9, clip_on=False)
        texts.append(f"{value.value:.3f}" + ("" if value.margin is None else f" ±{value.margin:.3f}"))
        tooltips.append((axes, x, place, f"{row.name}: {texts[-1]}" + ("" if inside else ", outside the axis")))
    leader = next((row.name for row in rows if row.best), "")
    _label_rows(axes, [row.name for row in rows], texts, leader, [row.name for row in rows if row.tied])
    axes.set_xlim(low, high)
    axes.locator_params(axis="x", nbins=4)
    return tooltips


def robust_limits(values: Sequence[float], margins: Sequence[float]) -> tuple[float, float]:
    """Return axis limits that ignore outliers, and intervals that are wider than all values together."""
    if not values:
        return 0.0, 1.0
    median = float(np.median(values))
    reach = MAX_DEVIATIONS * max(float(np.median(np.abs(np.subtract(values, median)))), MIN_SPREAD)
    inside = [(v, m) for v, m in zip(values, margins, strict=True) if abs(v - median) <= reach]
    lowest, highest = min(v for v, _ in inside), max(v for v, _ in inside)
    spread = max(highest - lowest, MIN_SPREAD)
    low = max(lowest - spread, min(v - m for v, m in inside))
    high = min(highest + spread, max(v + m for v, m in inside))
    padding = max(0.06 * (high - low), 0.1 * MIN_SPREAD)
    return low - padding, high + padding


def _label_rows(axes: Any, names: Sequence[str], values: Sequence[str], leader: str, tied: Sequence[str]) -> None:
    """Write a name on the left and a value on the right of each row, from top to bottom."""
    axes.set_yticks(range(len(names)), [plots.shorten(name, MAX_NAME_LENGTH) for name in names])
    position: dict[str, Any] = {
        "xycoords": axes.get_yaxis_transform(),
        "xytext": (7, 0),
        "textcoords": "offset points",
    }
    for tick, name, place, value in zip(axes.get_yticklabels(), names, range(len(names)), values, strict=True):
        weight = "bold" if name == leader else "normal"
        tick.set_fontweight(weight)
        text = f"{value} ≈" if name in tied else value
        axes.annotate(text, (1, place), **position, va="center", fontweight=weight)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
