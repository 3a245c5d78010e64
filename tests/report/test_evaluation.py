"""An evaluation as tables, and as a page that needs nothing else."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import html5lib
import numpy as np
import pytest
from scipy.special import expit

from partly import Labels, metrics
from partly.errors import SettingError
from partly.metrics import slice_items
from partly.model_choice.missingness import missingness
from partly.report import evaluation_page, evaluation_tables
from partly.report.evaluation import Evaluation, format_p, score_model

PAYLOAD = '"><script>alert(1)</script>'
NAMES = ("cat & dog", PAYLOAD, "x_1")


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    rng = np.random.default_rng(0)
    y = rng.random((300, 3)) < 0.3
    labels = Labels.from_ternary(np.where(rng.random(y.shape) < 0.6, np.where(y, 1, -1), 0), names=NAMES)
    slices = [("site", part) for part in slice_items(labels, [PAYLOAD, "south"] * 150, "site")]
    models = []
    for name, strength in ((f"good{PAYLOAD}", 2.5), ("poor_1", 0.7)):
        scores = expit(rng.normal(size=y.shape) + strength * y - 1)
        whole = metrics.estimate(scores, labels)
        missing = missingness(scores, labels)
        models.append(score_model(name, scores, labels, 0.5, missing, 0.9, slices, whole))
    return Evaluation(labels, 0.5, 0.9, models, [f"a warning {PAYLOAD}"])


def test_csv_holds_every_number_once(evaluation: Evaluation) -> None:
    rows = list(csv.DictReader(io.StringIO(evaluation_tables.to_csv(evaluation))))
    keys = [(row["model"], row["section"], row["part"], row["metric"]) for row in rows]
    assert len(set(keys)) == len(keys)
    (found,) = (r for r in rows if r["model"] == "poor_1" and r["section"] == "known entries" and r["metric"] == "mAP")
    model = evaluation.models[1]
    assert float(found["value"]) == model.values["mAP"]
    assert (float(found["low"]), float(found["high"])) == model.intervals["mAP"]
    (gap,) = (row for row in rows if row["section"] == "difference" and row["metric"] == "mAP")
    assert float(gap["value"]) == pytest.approx(evaluation.models[0].values["mAP"] - model.values["mAP"])
    assert float(gap["p"]) < 0.01
    (whole,) = (r for r in rows if r["model"] == "poor_1" and r["section"] == "all entries" and r["metric"] == "OP")
    assert whole["assumption"] == "at-random"
    assert float(whole["lowest"]) <= float(whole["value"]) <= float(whole["highest"])
    labels = [row for row in rows if row["model"] == "poor_1" and row["section"] == "label" and row["metric"] == "AP"]
    assert [row["part"] for row in labels] == list(NAMES)
    assert [float(row["value"]) for row in labels] == model.measured.by_label["AP"].tolist()


def test_json_is_strict_and_complete(evaluation: Evaluation) -> None:
    result = json.loads(evaluation_tables.to_json(evaluation), parse_constant=pytest.fail)
    poor = result["models"]["poor_1"]
    assert poor["mAP"] == evaluation.models[1].values["mAP"]
    assert poor["all_entries"]["mechanism"] == "at-random"
    assert "missing at random" in poor["all_entries"]["assumption"]
    assert set(poor["by"]["site"]) == {f"site {PAYLOAD}", "site south"}
    assert {row["metric"] for row in result["comparisons"]} >= {"mAP", "OF1"}


def test_markdown_and_latex_escape_names(evaluation: Evaluation) -> None:
    text = evaluation_tables.to_markdown(evaluation)
    assert "<script>" not in text
    assert "poor\\_1" in text
    widths = {line.count("|") for line in text.split("\n\n")[1].splitlines()}
    assert len(widths) == 1
    latex = evaluation_tables.to_latex(evaluation)
    assert r"poor\_1" in latex
    assert (
        latex.count(r"\begin{tabular}")
        == latex.count(r"\end{tabular}")
        == len(evaluation_tables.all_tables(evaluation))
    )
    assert not re.search("[−–≥]", latex)
    with pytest.raises(SettingError, match="written as"):
        evaluation_tables.writer_for(Path("x.pdf"))


def test_sentences_name_the_better_model(evaluation: Evaluation) -> None:
    (sentence,) = evaluation.sentences()
    assert sentence.startswith(f"good{PAYLOAD} is better than poor_1: mAP ")
    assert "Holm-adjusted for 6 tests" in sentence
    turned = Evaluation(evaluation.labels, 0.5, 0.9, evaluation.models[::-1], [])
    (same,) = turned.sentences()
    assert same == sentence
    twice = Evaluation(evaluation.labels, 0.5, 0.9, [evaluation.models[1]] * 2, [])
    assert list(twice.sentences()) == []  # one name
    assert (format_p(0.00001), format_p(0.021), format_p(float("nan"))) == ("< 0.0001", "= 0.021", "undefined")


def test_the_page_stands_alone_and_escapes_names(evaluation: Evaluation) -> None:
    text = evaluation_page.render(evaluation)
    document = html5lib.parse(text, namespaceHTMLElements=False)
    scripts = document.findall(".//script")
    assert [script.get("type") for script in scripts] == ["application/json", None]
    assert not [e for tag in ("link", "iframe", "object") for e in document.iter(tag)]
    assert all(e.get("src", "data:").startswith("data:") for e in document.iter())
    headings = ["".join(e.itertext()).strip() for e in document.iter("h2")]
    for wanted in ("Comparison of models", "By site", "Scores by label", "Calibration", "Thresholds"):
        assert wanted in headings
    assert sum(heading.startswith("All entries, known or not") for heading in headings) == 2
    (table,) = (t for t in document.iter("table") if "labels" in t.get("class", ""))
    rows = [["".join(cell.itertext()).strip() for cell in row] for row in table.find("tbody")]
    yes, no = evaluation.labels.counts()
    assert {row[0]: (row[-2], row[-1]) for row in rows} == {
        name: (str(y), str(n)) for name, y, n in zip(NAMES, yes, no, strict=True)
    }
    ap = evaluation.models[0].measured.by_label["AP"]
    assert {row[0]: row[1] for row in rows} == {name: f"{value:.3f}" for name, value in zip(NAMES, ap, strict=True)}


def test_a_page_of_labels_without_a_no_is_written() -> None:
    labels = Labels.from_positives(np.eye(30, 3, dtype=int))
    scores = np.random.default_rng(0).random((30, 3))
    model = score_model("one", scores, labels, 0.5, missingness(scores, labels), 0.95)
    text = evaluation_page.render(Evaluation(labels, 0.5, 0.95, [model], []))
    assert "undefined" in text
    assert "<h2>Thresholds</h2>" not in text
