"""Refinement by the number of fully labeled items, rather than their share: a method needs a number of examples.

Paper: C.-Y. Hsieh and others, arXiv 2109.14676, tables 1 and 2, which have shares of sets of other sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partly.comparison.groups import REFERENCE_METHODS
from partly.comparison.results import Record
from partly.comparison.statistics import Mean, mean
from partly.report import figures, plots

COARSE = "coarse-only:"


@dataclass(frozen=True)
class Series:
    """One method on one data set: number of fully labeled items -> score."""

    data: str
    method: str
    points: dict[float, Mean]


def gather(records: Sequence[Record], metric: str) -> list[Series]:
    """Return a series for each method on each data set cut to a number of items, if it has at least two points."""
    scores: dict[tuple[str, str], dict[float, list[float]]] = {}
    for record in records:
        size, coarse = record["data"].partition(":")[2], record["scenario"].startswith(COARSE)
        if size and coarse and record["method"] not in REFERENCE_METHODS:
            number = int(size) * float(record["scenario"].removeprefix(COARSE))
            by_number = scores.setdefault((record["data"], record["method"]), {})
            by_number.setdefault(number, []).append(record["test"][metric])
    series = [Series(*key, _average(by_number)) for key, by_number in scores.items()]
    return [one for one in series if len(one.points) > 1]


def _average(scores: dict[float, list[float]]) -> dict[float, Mean]:
    return {number: value for number in sorted(scores) if (value := mean(scores[number])) is not None}


def draw(series: Sequence[Series], metric: str) -> bytes:
    """SVG with a panel per data set and a line per method, with intervals."""
    sets = list(dict.fromkeys(one.data for one in series))
    with figures.new_figure(4.6 * len(sets), 3.2) as figure:
        panels = figure.subplots(1, len(sets), squeeze=False)[0]
        for axes, data in zip(panels, sets, strict=True):
            for place, one in enumerate(s for s in series if s.data == data):
                style = plots.choose_style(place)
                values = [point.value for point in one.points.values()]
                margins = [point.margin or 0.0 for point in one.points.values()]
                axes.errorbar(
                    list(one.points),
                    values,
                    margins,
                    ms=4,
                    capsize=2,
                    color=style.color,
                    marker=style.marker,
                    label=one.method,
                )
            numbers = sorted({number for one in series if one.data == data for number in one.points})
            axes.set(title=data, xscale="log", xlabel="fully labeled items", ylabel=f"test {metric}")
            axes.set_xticks(numbers, [f"{number:.0f}" for number in numbers])
            axes.set_xticks([], minor=True)
            axes.legend(frameon=False, fontsize=8)
        return figures.to_svg(figure)
