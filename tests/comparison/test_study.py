"""The study of ways to annotate: the answer from made-up lines, and a small one from end to end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comparison.making import line, write_split
from partly.cli.study import study as study_command
from partly.comparison import Experiment, label_budget, markdown, results, study
from partly.comparison.label_budget import Point, Study
from partly.data import LabelSemantics
from partly.errors import DataError, SettingError
from partly.report.layout import SCRIPT, format_inline

FULL = {0: 0.90, 1: 0.91, 2: 0.92}


def around(centre: float, spread: float = 0.01) -> dict[int, float]:
    return {0: centre - spread, 1: centre, 2: centre + spread}


def made(scores: dict[str, dict[float, float]], spread: float = 0.01, single: float | None = None) -> Study:
    """Scores of ways by share; the seeds of all move together, so that their differences are sure."""
    points = [Point(w, s, s, around(v, spread)) for w, row in scores.items() for s, v in row.items()]
    points += [] if single is None else [Point("noisy-plus", None, 0.971, around(single))]
    return Study("voc", "mlp", tuple(points), FULL)


WORKED = {"uniform": {0.1: 0.7, 0.5: 0.85}, "dense": {0.1: 0.6, 0.5: 0.84}, "noisy": {0.1: 0.1, 0.5: 0.2}}


def test_the_answer_names_the_best_way_its_leads_and_what_a_single_point_is_worth() -> None:
    assert study.answer(made(WORKED, single=0.8)) == (
        "The best way to spend a label budget is **uniform** (some labels of every item): it has the highest test mAP "
        "at 2 of 2 budgets, each time significantly. Lead of uniform over dense: +0.100 at 10%, +0.010 at 50%. "
        "Lead of uniform over noisy: +0.600 at 10%, +0.650 at 50%. **noisy-plus** (one yes of every item, "
        "everything else labeled no), with 97.1% correct labels, has 0.800; uniform reaches that with 50%."
    )
    assert "uniform does not reach that" in study.answer(made(WORKED, single=0.95))


def test_the_answer_counts_who_is_first() -> None:
    turned = {"dense": {0.1: 0.5, 0.3: 0.8, 0.5: 0.9}, "uniform": {0.1: 0.6, 0.3: 0.7, 0.5: 0.8}}
    said = study.answer(made(turned))
    assert "is **dense** (all labels of some items): it has the highest test mAP at 2 of 3 budgets" in said
    assert "Lead of dense over uniform: -0.100 at 10%, +0.100 at 50%." in said


def test_one_seed_shows_nothing() -> None:
    rows = {"uniform": 0.530, "dense": 0.212}
    one = Study("voc", "mlp", tuple(Point(way, 0.1, 0.1, {0: score}) for way, score in rows.items()), FULL)
    said = study.answer(one)
    assert said.startswith(
        "One seed is not enough to decide: **uniform** (some labels of every item) has the highest test mAP"
    )
    assert "--seeds 5" in said
    assert "| 10% | **0.530** | 0.212 ≈ |" in study.render_table(one)  # not shown to be worse


def test_partly_known_labels_are_no_truth() -> None:
    pages = [
        study.render_markdown([one], 2, lambda *_: "") for one in (made(WORKED), replace(made(WORKED), known=0.25))
    ]
    assert [("partly known (25% of the entries), so the study has no complete truth" in page) for page in pages] == [
        0,
        1,
    ]


def test_labels_that_are_partly_known_are_told_of_a_part_of_the_items_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    numbers = "\n".join(f"i{row},{value}" for row, value in enumerate(rng.normal(size=40)))
    (tmp_path / "x.csv").write_text(f"item,a\n{numbers}\n")
    known = "\n".join(f"i{row},{z}," for row, z in enumerate(rng.integers(0, 2, 40)))  # nothing of the second label
    (tmp_path / "labels.csv").write_text(f"item,p,q\n{known}\n")
    asked = Experiment((f"{tmp_path / 'x.csv'}:20",), "bce", "uniform:0.5", labels=str(tmp_path / "labels.csv"))
    assert label_budget.measure_shares(asked)[1] == {"x:20": 0.5}
    (one,) = label_budget.gather(asked, [line(data="x:20")], known=label_budget.measure_shares(asked)[1])
    assert one.known == 0.5


def test_labels_that_cannot_be_read_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And are read as the cells read them."""
    opened = []

    def refuse(*how: Any) -> None:
        opened.append(how)
        raise DataError("no")

    monkeypatch.setattr("partly.comparison.protocol.open_data", refuse)
    monkeypatch.setattr("partly.comparison.runner.run", None)
    asked = Experiment("x", "bce", "uniform:0.5", labels="l", skip_bad=True, size=9, absent="no", uncertain="yes")
    with pytest.raises(DataError):
        study.run(asked, tmp_path)
    with pytest.raises(DataError):
        label_budget.measure_shares(asked)[1]
    assert opened == [("x", "l", True, 9, LabelSemantics("no", "yes"))] * 2


def test_ways_that_are_level_share_the_lead() -> None:
    points = [
        Point(way, share, share, scores)
        for share in (0.1, 0.5)
        for way, scores in {
            "uniform": {0: 0.71, 1: 0.72, 2: 0.70},
            "dense": {0: 0.70, 1: 0.71, 2: 0.71},
            "noisy": {0: 0.51, 1: 0.52, 2: 0.50},
        }.items()
    ]
    one = Study("voc", "mlp", tuple(points), FULL)
    assert one.ranking().tied == ("dense",)
    assert study.answer(one).startswith(
        "**uniform** (some labels of every item) and **dense** (all labels of some items) share the lead: "
    )


def test_no_way_is_best_where_seeds_disagree() -> None:
    rows = {"uniform": {0: 0.7, 1: 0.5, 2: 0.6}, "dense": {0: 0.5, 1: 0.7, 2: 0.59}}
    one = Study("voc", "mlp", tuple(Point(way, 0.1, 0.1, scores) for way, scores in rows.items()), FULL)
    said = study.answer(one)
    assert said.startswith("No scheme is significantly best; **uniform**")
    assert "≈" in "\n".join(study.render_table(one))


@pytest.mark.parametrize("scores", [{}, {"uniform": {0.1: 0.5}}])
def test_one_way_alone_is_no_choice(scores: dict[str, dict[float, float]]) -> None:
    assert study.answer(made(scores)) == "There is nothing to compare: fewer than two schemes have scores."


def test_the_table() -> None:
    one = made(WORKED, spread=0.0, single=0.8)
    points = (*one.points, Point("dense", 0.9, 0.9, {}), Point("uniform", 0.9, 0.8333, {0: 0.87}))
    assert study.render_table(Study("voc", "mlp", points, {0: 0.9})) == [
        "| share | uniform | dense | noisy |",
        "|---:|---:|---:|---:|",
        "| 10% | **0.700 ± 0.000** | 0.600 ± 0.000 | 0.100 ± 0.000 |",
        "| 50% | **0.850 ± 0.000** | 0.840 ± 0.000 | 0.200 ± 0.000 |",
        "| 90% | **0.870** (83.3%) |  |  |",
        "| 100% | 0.900 | 0.900 | 0.900 |",
        "",
        "**noisy-plus** (one yes of every item, everything else labeled no): 0.800 ± 0.025, 97.1% correct.\n",
    ]


def test_the_picture_is_drawn_whatever_is_missing() -> None:
    one = made(WORKED, single=0.8)
    assert study.draw(one).svg.startswith(b"<svg")
    assert study.draw(one) == study.draw(one)
    assert study.draw(one) != study.draw(made(WORKED))
    empty = Study("voc", "mlp", (Point("dense", 0.1, 0.1, {}),), {})
    assert study.draw(empty).svg.startswith(b"<svg")


def test_lines_become_points_with_the_share_that_is_right(tmp_path: Path) -> None:
    """Four labels: a tenth of them is none, a third one (25 %). 120 items: 12, and 40."""
    path = write_split(tmp_path / "tiny.npz")
    texts = ("uniform:0.1", "uniform:0.33", "dense:0.1", "noisy:0.9", "noisy-plus")
    asked = Experiment((str(path),), ("bce",), texts, ("linear",), 2, naive=False)
    found = [line("bce", seed, 0.5 + seed / 10, scenario=text) for text in (*texts, "full") for seed in range(2)]
    found += [line("partial-bce", 0, 0.99, scenario="uniform:0.33"), line("bce", 2, None, scenario="noisy-plus")]
    (one,) = label_budget.gather(asked, found, label_budget.measure_shares(asked)[0])
    assert (one.data, one.head, one.full) == ("tiny", "linear", {0: 0.5, 1: 0.6})
    assert all(point.scores == {0: 0.5, 1: 0.6} for point in one.points)
    clean = {(p.scheme, p.share): p.correct for p in one.points}
    y = np.load(path)["labels_train"]
    assert clean["uniform", 0.1] == 0.0
    assert clean["uniform", 0.33] == 0.25
    assert clean["dense", 0.1] == 0.1
    assert clean["noisy", 0.9] == pytest.approx(0.9, abs=0.03)
    (nominal,) = label_budget.gather(asked, found)  # from the lines alone, without the data
    assert [p.correct for p in nominal.points] == [p.share for p in nominal.points]
    assert clean["noisy-plus", None] == pytest.approx(1 - np.maximum(y.sum(axis=1) - 1, 0).sum() / y.size)


def test_a_study_from_end_to_end_is_not_run_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_split(tmp_path / "tiny.npz")
    settings: dict[str, Any] = {"head": "linear", "seeds": 2, "recipe": {"epochs": 2}, "progress": False, "workers": 1}
    asked = {"shares": (0.5, 1.0), "scenarios": ("uniform", "dense", "noisy-plus"), **settings}
    one = study.study(path, **asked, out=tmp_path / "out")
    there = results.read(tmp_path / "out" / "study.jsonl")
    assert {(one["scenario"], one["method"]) for one in there} == {
        (text, "bce") for text in ("uniform:0.5", "dense:0.5", "noisy-plus", "full")
    }
    assert len(there) == 2 * 4
    assert [(p.scheme, p.share, len(p.scores)) for p in one.points] == [
        ("uniform", 0.5, 2), ("dense", 0.5, 2), ("noisy-plus", None, 2)
    ]  # fmt: skip
    page = (tmp_path / "out" / "study.md").read_text()
    assert study.answer(one) in page
    html = (tmp_path / "out" / "study.html").read_text()
    assert str(format_inline(label_budget.sentences(one)[0])) in html
    assert all(
        f'<td class="number">{format_inline(cell)}</td>' in html for _, cells in study.table_rows(one) for cell in cells
    )
    assert (tmp_path / "out" / "study-tiny-linear.svg").read_bytes() == study.draw(one).svg
    assert markdown.render(there)  # the same lines as a comparison: one method, no naive row
    written = (tmp_path / "out" / "study.jsonl").read_bytes()
    assert study.study(path, **asked, out=tmp_path / "out") == one
    assert (tmp_path / "out" / "study.jsonl").read_bytes() == written
    experiment = tmp_path / "study.toml"  # of the same name, so that all its cells are there already
    experiment.write_text(
        'data = "tiny.npz"\nmethods = ["bce"]\nscenarios = ["uniform:0.5", "dense:0.5"]\nheads = ["linear"]\n'
        "seeds = 2\nnaive = false\nrecipe = {epochs = 2}\n"
    )
    study_command(str(experiment), out=tmp_path / "out", workers=1)
    assert "| 50% |" in capsys.readouterr().out
    assert (tmp_path / "out" / "study.jsonl").read_bytes() == written
    assert "noisy-plus" not in (tmp_path / "out" / "study.md").read_text()


def test_text_from_the_data_stays_text_in_the_page() -> None:
    bad = "</script><script>alert(1)</script>**'\""
    one = made(WORKED)
    html = study.render_html([Study(bad, bad, one.points, one.full)], bad)
    assert html.count("<script") == html.count(f"<script>{SCRIPT}</script>") == 1
    assert html.count("&lt;script&gt;") == 4  # title, heading, and data and head below it


@pytest.mark.parametrize("shares", ["0.1;0.2", "10", "-0.1"])
def test_impossible_shares_are_refused(tmp_path: Path, shares: str) -> None:
    with pytest.raises(SettingError, match="from 0 to 1"):
        study_command(str(write_split(tmp_path / "tiny.npz")), shares=shares, out=tmp_path)
