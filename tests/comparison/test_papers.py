from __future__ import annotations

import pytest

from partly import methods
from partly.active import queries
from partly.comparison import papers


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
    assert [one.value for one in papers.beside(data, scenario, method)] == values


def test_names_in_papers_exist_in_the_tables():
    known = {one.method for one in papers.figures()}
    for entry in (*methods.discover().values(), *queries.discover().values()):
        assert set(getattr(entry.module, "IN_PAPERS", ())) <= known, entry.name


def test_settings_and_data_that_are_like_ours_exist_in_the_tables():
    assert set(papers.DATA) <= {one.dataset for one in papers.figures()}
    assert set(papers.SCENARIOS) <= {one.setting for one in papers.figures()}
