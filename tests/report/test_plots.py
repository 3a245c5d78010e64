"""Pictures as bytes: shapes that tell yes, no and unknown apart without colour, SVG without outside addresses."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image

from partly.report import plots
from partly.report.chart import INK


def test_yes_no_and_unknown_differ_in_ink_and_not_only_in_colour() -> None:
    z = np.array([[1, -1, 0], [0, 1, -1]], np.int8)
    with Image.open(io.BytesIO(plots.draw_matrix(z))) as image:
        alpha = np.asarray(image)[:, :, 3]
    height, width = alpha.shape[0] // 2, alpha.shape[1] // 3
    ink = alpha.reshape(2, height, 3, width).mean(axis=(1, 3)) / 255
    assert ink[0, 0] == ink[1, 1] > 2 * ink[0, 1] > 20 * ink[0, 2] > 0
    assert ink[0, 1] == ink[1, 2]
    assert ink[0, 2] == ink[1, 0]


def test_runs_differ_in_more_than_colour() -> None:
    looks = [plots.choose_style(position, False) for position in range(30)]
    assert len({(look.color, look.marker) for look in looks}) == 30
    assert all(a.marker != b.marker and a.color != b.color for a, b in pairwise(looks))
    assert plots.choose_style(2, True).dashed
    assert not plots.choose_style(2, False).dashed


@pytest.mark.parametrize("best", [None, 2])
def test_svg_is_well_formed_and_follows_the_scheme(best: int | None) -> None:
    look = plots.choose_style(0, False)
    drawn = plots.draw_curves(
        [plots.Curve(look, [1, 2, 3], [0.1, 0.5, 0.3], best), plots.Curve(plots.choose_style(1, True), [1], [0.2])]
    )
    text = drawn.svg.decode()
    ElementTree.fromstring(text)
    assert "prefers-color-scheme:dark" in text
    assert INK not in text.replace(f"color:{INK}", "")
    addresses = set(filter(lambda word: "://" in word, text.replace('"', " ").split()))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name of XML, never fetched


def test_the_ring_is_drawn_around_the_best_epoch_only() -> None:
    look = plots.choose_style(0, False)
    plain, ringed, elsewhere = (
        plots.draw_curves([plots.Curve(look, [1, 2, 3], [0.1, 0.5, 0.3], best)]) for best in (None, 2, 9)
    )
    assert plain == elsewhere != ringed


def test_scatter_leaves_out_what_is_undefined() -> None:
    names, known = list("abc"), np.array([0, 5, 100])
    with_hole = plots.draw_scatter(names, known, [(plots.choose_style(0, False), "run", np.array([0.2, np.nan, 0.9]))])
    without = plots.draw_scatter(names, known, [(plots.choose_style(0, False), "run", np.array([0.2, 0.5, 0.9]))])
    assert without.svg.count(b"<use") == with_hole.svg.count(b"<use") + 1
    assert [words for *_, words in with_hole.points] == ["a, AP 0.200, 0 known yes", "c, AP 0.900, 100 known yes"]


def test_points_lie_where_the_markers_are_drawn() -> None:
    drawn = plots.draw_curves([plots.Curve(plots.choose_style(0, False), [1, 2, 3], [0.1, 0.5, 0.3], name="run")])
    root = ElementTree.fromstring(drawn.svg)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    places = [re.findall(r"[\d.]+", use.attrib["transform"]) for use in root.iter("{http://www.w3.org/2000/svg}use")]
    markers = [(float(x) / width, float(y) / height) for x, y, _ in places]
    assert [words for *_, words in drawn.points] == [f"run, epoch {x}: {y}" for x, y in ((1, 0.1), (2, 0.5), (3, 0.3))]
    np.testing.assert_allclose([point[:2] for point in drawn.points], markers, atol=1e-3)


def test_words_in_a_drawing_are_plain() -> None:
    assert plots.shorten("a\u202eb\nc\x00") == "ab c"
    assert plots.shorten("x" * 30, 10) == "x" * 9 + "…"
