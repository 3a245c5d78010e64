"""The HTML page of a preview: how much each target would fill in, as pictures and tables."""

from __future__ import annotations

from pathlib import Path

from partly.atomic_io import write_file
from partly.completion.preview import Preview
from partly.report.chart import Chart, Drawing, linear_axis
from partly.report.layout import load_template
from partly.report.plots import NO, YES

Points = list[tuple[float, float, str]]  # x, y, tooltip


def write(path: Path, title: str, expected: Preview, unknown: int, budget: int, advice: str) -> None:
    """Write the page atomically. unknown: number of unknown entries; budget: of answers; advice: what to do next."""
    write_file(path, render(title, expected, unknown, budget, advice).encode("utf-8", "replace"))


def render(title: str, expected: Preview, unknown: int, budget: int, advice: str) -> str:
    """Return the page as HTML."""
    return load_template("preview.html").render(
        title=title,
        expected=expected,
        unknown=unknown,
        budget=budget,
        advice=advice,
        yes_picture=_draw(_yes_points(expected), "precision of yes", "% of hidden yes", YES),
        no_picture=_draw(_no_points(expected, unknown), "% of the hidden yes lost", "% filled in as no", NO),
    )


def _yes_points(expected: Preview) -> Points:
    return [
        (
            target.precision,
            100 * target.share_of_hidden_yes,
            f"precision {target.precision:g}: {target.filled:,} entries, about {target.wrong:.0f} of them wrong",
        )
        for target in expected.yes
    ]


def _no_points(expected: Preview, unknown: int) -> Points:
    return [
        (
            100 * target.max_missed,
            100 * target.filled / max(unknown, 1),
            f"at most {target.max_missed:.0%} lost: {target.filled:,} entries, about {target.lost_yes:.0f} of them yes",
        )
        for target in expected.no
    ]


def _draw(points: Points, x_name: str, y_name: str, color: str) -> Drawing:
    """Draw a line through the points; the vertical axis goes from 0 to 100 %."""
    x, y = [point[0] for point in points], [point[1] for point in points]
    padding = 0.06 * (max(x) - min(x))
    x_axis = linear_axis(min(x) - padding, max(x) + padding, x_name, max_ticks=5)
    chart = Chart(331, 194, x_axis, linear_axis(-4, 104, y_name, max_ticks=5))
    chart.add_line(x, y, color)
    chart.add_marks(x, y, "o", f'fill="{color}"', 5)
    return chart.to_drawing(points)
