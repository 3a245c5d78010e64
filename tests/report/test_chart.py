"""Charts as SVG: figures at round distances, values where they belong, and gaps where there is nothing."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly.report.chart import Axis, Chart, linear_axis, pad_range

NUMBERS = st.floats(-1e12, 1e12, allow_subnormal=False)


@pytest.mark.parametrize(
    ("low", "high", "most", "whole", "figures"),
    [
        (-0.02, 1.02, 9, False, "0.0 0.2 0.4 0.6 0.8 1.0"),
        (0.285, 0.615, 9, False, "0.30 0.35 0.40 0.45 0.50 0.55 0.60"),
        (0, 1, 4, False, "0.00 0.25 0.50 0.75 1.00"),
        (0.5, 1.5, 8, True, "1"),
        (0.5, 3.5, 8, True, "1 2 3"),
        (0.5, 20.5, 8, True, "5 10 15 20"),
        (-0.05, 0.05, 5, True, "0"),
        (0, 2e9, 2, False, "0 1e+09 2e+09"),
    ],
)
def test_figures_stand_at_round_distances(low: float, high: float, most: int, whole: bool, figures: str) -> None:
    assert list(linear_axis(low, high, max_ticks=most, whole=whole).ticks.values()) == figures.split()


@given(st.lists(NUMBERS | st.sampled_from([math.nan, math.inf]), min_size=1, max_size=5), st.booleans())
def test_any_values_can_be_drawn_and_lie_inside(values: list[float], whole: bool) -> None:
    axis = linear_axis(*pad_range(values), whole=whole)
    assert 0 <= len(axis.ticks) <= 10
    assert all(axis.low <= tick * (1 + 1e-9 * math.copysign(1, tick)) for tick in axis.ticks)
    chart = Chart(300, 200, axis, axis)
    chart.add_line(values, values, "#000000")
    ElementTree.fromstring(chart.to_svg())
    for value in filter(math.isfinite, values):
        x, y = chart.to_picture(value, value)
        assert chart.left <= x <= 300
        assert 0 <= y <= 200


def test_what_is_undefined_is_a_gap_and_has_no_mark() -> None:
    axis = linear_axis(0, 4)
    chart = Chart(300, 200, axis, axis)
    chart.add_line([0, 1, 2, 3, 4], [0, 1, math.nan, 3, 4], "#000000")
    chart.add_marks([0, 1], [1, math.nan], "o", "", 3)
    svg = chart.to_svg().decode()
    line = next(part for part in svg.splitlines() if 'stroke="#000000"' in part)
    assert line.count("M") == 2
    assert line.count("L") == 2
    assert svg.count("<use") == 1


def test_an_axis_may_be_bent() -> None:
    axis = Axis(1, 100, {}, scale=math.log10)
    assert [axis.position(value) for value in (1, 10, 100)] == [0, 0.5, 1]
