from __future__ import annotations

import pytest

from comparison.making import lines
from evidence import papers
from partly import methods
from partly.active import strategies
from partly.comparison import markdown


def test_every_figure_has_a_known_paper_and_one_value():
    found = papers.figures()
    assert len(found) == 1215
    assert {one.paper for one in found} == set(papers.CITATIONS)
    values: dict[tuple[str, ...], float] = {}
    for one in found:
        key = (one.paper, one.table, one.dataset, one.setting, one.method, one.metric)
        assert values.setdefault(key, one.value) == one.value, key  # a table may repeat a row


def test_look_up_by_paper_table_method_metric():
    (one,) = papers.find("Zhou et al. 2022", "BenchmarkResults", "AN loss", "mAP", dataset="VOC2012")
    assert (one.value, one.std, one.setting) == (85.89, 0.38, "1 P. & 0 N.")
    assert one.share == pytest.approx(0.8589)
    assert [
        one.value for one in papers.find("Durand et al. 2019", "Table4", metric="MAP", method="BCE + fine-tuning")
    ] == [72.15]
    assert papers.find("Nobody 1900") == []
    assert papers.find(metric="P@1", setting="log2(M/(M+N))=-10", method="LEML")[0].share == 0.4689  # not per cent


@pytest.mark.parametrize(
    ("data", "scenario", "method", "values"),
    [
        ("voc2012", "single-positive", "assume-negative", [85.89]),
        ("coco", "uniform:0.1", "bce", [72.20]),
        ("coco", "uniform:0.1", "partial-bce", [75.31]),
        ("coco", "full", "bce", [76.78, 79.14]),
        ("coco", "single-positive", "bce", []),
        ("coco", "coarse-only:0.0009765625", "refine", [0.6633, 0.4024, 0.3083]),
        ("coco", "coarse-only:0.015625", "bce", [0.7543, 0.4448, 0.3211]),
        ("yeast", "single-positive", "assume-negative", []),
        ("coco", "uniform:0.1", "no-such-method", []),
    ],
)
def test_figures_of_the_same_kind_of_setting(data, scenario, method, values):
    assert [one.value for one in papers.find_comparable(data, scenario, method)] == values


def test_names_in_papers_exist_in_the_tables():
    known = {one.method for one in papers.figures()}
    for entry in (*methods.discover().values(), *strategies.discover().values()):
        assert set(entry.about.in_papers) <= known, entry.name


def test_settings_and_data_that_are_like_ours_exist_in_the_tables():
    assert set(papers.DATA) <= {one.dataset for one in papers.figures()}
    assert set(papers.SCENARIOS) <= {one.setting for one in papers.figures()}


def test_the_column_of_a_table_quotes_papers():
    made = lines({"full": [0.8], "assume-negative": [0.7]}, data="voc2012", scenario="single-positive")
    text = markdown.render(made, published=papers.format_column)
    assert "| 0.894 (Zhou et al. 2022, BenchmarkResults) |" in text
    assert "| 0.859 (Zhou et al. 2022, BenchmarkResults) |" in text
    assert "Acknowledging the Unknown" in papers.format_citations(text)
    coarse = lines({"refine": [0.5]}, data="coco", scenario="coarse-only:0.0009765625")
    quoted = "P@1 0.663, P@3 0.402, P@5 0.308 (Hsieh et al. 2021, Table1)"
    assert quoted in markdown.render(coarse, published=papers.format_column)
    partial = lines({"assume-negative": [0.7]}, data="voc2012", scenario="single-positive", validation="partial")
    assert "Zhou" not in markdown.render(partial, published=papers.format_column)  # papers validate on complete labels
    assert papers.format_citations("nothing") == ""


def test_areas_of_questions_quote_the_paper():
    """Table 3 of Hsieh et al., who ask with their own method, on COCO."""
    asked = {"method": "refine", "data": "coco:500", "asks": {"query": "look-ahead"}}
    assert papers.find_areas(asked, "P@1") == {"Hsieh et al. 2021, Table3": "0.778"}
    assert papers.find_areas(asked | {"method": "bce"}, "P@1") == {}
    assert papers.find_areas(asked | {"data": "voc2012"}, "P@1") == {}
