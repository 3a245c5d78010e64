"""Refinement over the number of wholly known items, and not their share: what a method needs is a number of examples.

Paper: C.-Y. Hsieh and others, arXiv 2109.14676, tables 1 and 2, which have shares of sets of other sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partly.comparison.groups import OWN_HEAD
from partly.comparison.results import Line
from partly.comparison.statistics import Mean, mean
from partly.report import figures, plots

COARSE = "coarse-only:"


@dataclass(frozen=True)
class Series:
    """One method on one set: number of wholly known items -> score."""

    data: str
    method: str
    points: dict[float, Mean]


def series(lines: Sequence[Line], metric: str) -> list[Series]:
    """Of sets that were cut to a number of items, which their names end with, and of at least two numbers."""
    scores: dict[tuple[str, str], dict[float, list[float]]] = {}
    for line in lines:
        size, coarse = line["data"].partition(":")[2], line["scenario"].startswith(COARSE)
        if size and coarse and line["method"] not in OWN_HEAD:
            number = int(size) * float(line["scenario"].removeprefix(COARSE))
            ours = scores.setdefault((line["data"], line["method"]), {})
            ours.setdefault(number, []).append(line["test"][metric])
    found = [Series(*key, _means(ours)) for key, ours in scores.items()]
    return [one for one in found if len(one.points) > 1]


def _means(scores: dict[float, list[float]]) -> dict[float, Mean]:
    return {number: found for number in sorted(scores) if (found := mean(scores[number])) is not None}


def draw(found: Sequence[Series], metric: str) -> bytes:
    """SVG: a panel for each set, a line for each method, with intervals."""
    sets = list(dict.fromkeys(one.data for one in found))
    with figures.new_figure(4.6 * len(sets), 3.2) as figure:
        panels = figure.subplots(1, len(sets), squeeze=False)[0]
        for axes, data in zip(panels, sets, strict=True):
            for place, one in enumerate(each for each in found if each.data == data):
                look = plots.choose_style(place)
                values = [point.value for point in one.points.values()]
                margins = [point.margin or 0.0 for point in one.points.values()]
                style = {"color": look.color, "marker": look.marker, "label": one.method}
                axes.errorbar(list(one.points), values, margins, ms=4, capsize=2, **style)
            numbers = sorted({number for one in found if one.data == data for number in one.points})
            axes.set(title=data, xscale="log", xlabel="items of which all labels are known", ylabel=f"test {metric}")
            axes.set_xticks(numbers, [f"{number:.0f}" for number in numbers])
            axes.set_xticks([], minor=True)
            axes.legend(frameon=False, fontsize=8)
        return figures.to_svg(figure)
