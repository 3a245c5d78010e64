from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from comparison.making import line, lines
from partly.comparison import charts, markdown, page, verdict
from partly.comparison.groups import gather
from partly.comparison.protocol import ProtocolError
from partly.comparison.statistics import rank
from partly.errors import DataError
from partly.report.layout import SCRIPT

RACE = {
    "full": [0.8, 0.9, 0.85],
    "assume-negative": [0.40, 0.42, 0.41],
    "bce": [0.61, 0.62, 0.63],
    "partial-bce": [0.7, 0.71, 0.72],
}


class Text(HTMLParser):
    """What a reader sees, and the tags around it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        self.seen.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.seen).split())


def svgs(html: str) -> list[bytes]:
    return [base64.b64decode(text) for text in re.findall(r"data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)", html)]


def test_labels_as_they_are_have_a_verdict():
    html = page.render(lines({name: RACE[name] for name in ("bce", "partial-bce")}, scenario="full"))
    words = Text(html).words
    assert "partial-bce wins with all known labels." in words
    assert "undefined on every test set" not in words


def test_the_winner_is_the_first_thing_said():
    html = page.render(lines(RACE), "A title")
    text = Text(html).words
    assert "clear win" in text
    assert text.index("partial-bce wins at uniform:0.5.") < text.index("mAP on the test set") < text.index("Tables")


def test_the_page_has_the_numbers_and_where_they_come_from():
    text = Text(page.render(lines(RACE))).words
    for word in (
        "0.710 ± 0.025",
        "bce, all labels",
        "reference",
        "digest of tiny",
        "tiny uniform:0.5 2",
        "a machine",
        "68 %",
    ):
        assert word in text
    assert "3 methods in 1 comparison: 1 data set, 1 scenario, 1 head, 3 seeds; 12 runs in total." in text


def test_the_page_needs_nothing_from_outside():
    html = page.render(lines(RACE))
    addresses = [v for _, attrs in Text(html).tags for k, v in attrs.items() if k in ("src", "href")]
    assert addresses
    assert all(address.startswith("data:") for address in addresses)
    assert not [tag for tag, _ in Text(html).tags if tag in ("link", "iframe")]
    assert [tag for tag, _ in Text(html).tags].count("script") == 1
    assert all(attrs.get("alt") for tag, attrs in Text(html).tags if tag == "img")


def test_text_from_the_data_stays_text():
    bad = "<script>alert(1)</script>"
    made = lines({"bce": [0.5, 0.6], bad: [0.4, 0.45]}, data=bad, machine=bad)
    html = page.render(made, bad)
    assert html.count("<script") == html.count(f"<script>{SCRIPT}</script>") == 1
    assert html.count("&lt;script&gt;") > 4
    assert html.count("\\u003cscript\\u003e") == 1  # in what the picture says: a mean
    for svg in svgs(html):
        assert b"<script" not in svg
        ElementTree.fromstring(svg)


def test_every_picture_is_there_and_can_be_drawn_again_to_the_byte():
    made = lines(RACE) + lines(RACE, head="mlp")
    html = page.render(made)
    assert len(svgs(html)) == 1 + 2  # ranks; a panel a block
    assert page.render(made) == html


def test_kinds_of_validation_are_told_apart():
    made = lines(RACE) + lines({k: v for k, v in RACE.items() if k != "full"}, validation="partial")
    text = Text(page.render(made)).words
    assert "Validated on complete labels" in text
    assert "Validated on partly known labels" in text


def test_undefined_scores_give_a_page_too():
    text = Text(page.render(lines({"bce": [None], "assume-negative": [None]}))).words
    assert "mAP is undefined on every test set" in text


def test_nothing_to_report_is_refused():
    with pytest.raises(DataError, match="no comparison"):
        page.render(lines({"full": [0.5]}))
    with pytest.raises(DataError, match="no comparison"):
        page.render([])


def test_lines_that_do_not_belong_together_are_refused(tmp_path):
    with pytest.raises(ProtocolError):
        page.write([line("bce"), line("assume-negative", protocol=0)], tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


def test_write_replaces_the_file_or_says_why_not(tmp_path):
    page.write(lines(RACE), tmp_path / "page.html", title="Here")
    assert "<title>Here</title>" in (tmp_path / "page.html").read_text("utf-8")
    with pytest.raises(DataError, match="cannot be written"):
        page.write(lines(RACE), tmp_path / "nowhere" / "page.html")


# ---------------------------------------------------------------- pictures


def drawn(svg: bytes) -> str:
    return " ".join(ElementTree.fromstring(svg).itertext())


def test_ranks_name_every_method_and_mark_those_that_are_level():
    blocks = gather(lines(RACE))
    styles = charts.choose_styles(blocks)
    told = rank([blocks[0].contestants])
    words = drawn(charts.draw_ranks(told, styles).svg)
    for word in ("partial-bce", "assume-negative", "1.00", "3.00", "mean rank"):
        assert word in words
    assert "≈" not in words
    level = rank([gather(lines({name: values[:1] for name, values in RACE.items()}))[0].contestants])
    assert "2.00 ≈" in drawn(charts.draw_ranks(level, styles).svg)
    assert charts.draw_ranks(told, styles).points[0][2] == "partial-bce: mean rank 1.00"


def test_one_bad_row_does_not_stretch_the_axis():
    ends = charts.robust_limits([0.90, 0.89, 0.88, 0.10], [0.01] * 4)
    assert 0.8 < ends[0] < 0.87
    assert 0.91 < ends[1] < 0.93
    assert charts.robust_limits([0.9, 0.5, 0.1], [0.0] * 3)[0] < 0.1  # three values that are far apart are no outliers
    low, high = charts.robust_limits([0.6, 0.61, 0.62], [0.4, 0.01, 0.01])  # one interval is wide
    assert 0.56 < low < high < 0.66
    (block,) = gather(lines({"bce": [0.9, 0.91], "em": [0.89, 0.88], "focal": [0.87, 0.88], "role": [0.1, 0.12]}))
    panel = charts.draw_scores(block, [], charts.choose_styles([block]))
    assert [words for *_, words in panel.points if "outside" in words] == ["role: 0.110 ±0.127, outside the axis"]


NEAR_TIES = {
    "assume-negative": [0.60, 0.61, 0.60],
    "bce": [0.71, 0.70, 0.72],
    "em": [0.70, 0.71, 0.7205],
    "focal": [0.69, 0.70, 0.705],
    "hill": [0.30, 0.31, 0.30],
    "role": [0.60, 0.72, 0.80],
}


def test_headline_table_picture_and_words_name_the_same_leaders():
    """By many methods, of which some are level and not beside each other: one rule, wherever it is said."""
    made = lines(NEAR_TIES)
    (block,) = gather(made)
    ((one,),) = verdict.judge([block])
    best, level = [row.name for row in block.rows if row.best], {row.name for row in block.rows if row.tied}
    assert best == [one.ranking.leader] == [max(block.rows, key=lambda row: row.mean().value).name]
    assert level == set(one.ranking.tied)
    html = page.render(made)
    lead = Text(html[html.index('class="lead"') : html.index("</p>", html.index('class="lead"'))]).words
    assert {name for name in NEAR_TIES if re.search(rf"(?<![\w-]){name}\b", lead)} == {*best, *level}
    marked = re.findall(r"<bdi>([\w-]+)</bdi> <span[^>]*>≈", html)
    assert set(marked) == level
    words = [words for words in markdown.render(made).splitlines() if words.startswith("| ")]
    assert {row.split()[1] for row in words if "≈" in row.split("|")[1]} == level
    assert [row.split()[1] for row in words if "**" in row] == [f"**{best[0]}**"]
    panel = drawn(charts.draw_scores(block, [], charts.choose_styles([block])).svg)
    assert panel.count("≈") == len(level)


def test_a_panel_shows_methods_and_both_ends():
    (block,) = gather(lines(RACE))
    panel = charts.draw_scores(block, ["partial-bce", "bce", "assume-negative"], charts.choose_styles([block]))
    svg, words = panel.svg, drawn(panel.svg)
    assert panel.points[0][2] == "partial-bce: 0.710 ±0.025"
    assert words.index("partial-bce") < words.index("assume-negative")
    assert "0.710 ±0.025" in words
    assert svg.count(b"stroke-dasharray") == 2
    (without,) = gather(lines({"bce": [0.5, 0.6]}))
    assert b"stroke-dasharray" not in charts.draw_scores(without, [], charts.choose_styles([without])).svg
