"""The report: whole, escaped, the same bytes every time, and no number in it that the metrics did not give."""

# Long because each kind of report is rendered and looked into.

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from PIL import Image

from partly import metrics
from partly.errors import DataError
from partly.estimators.classifier import Classifier
from partly.items import as_items, texts
from partly.labels import Labels
from partly.report import layout, operating_points
from partly.report import page as report
from partly.report.page import Examples, Report, RunView

NASTY = (
    "<script>alert(1)</script>",
    "a\u202eb\u202c",
    "new\nline",
    "$x^2$ & \"double\" 'single'",
    "日本",
    "long " * 60,
)
VOID = {"meta", "img", "br", "input"}


class Page(HTMLParser):
    """Balanced tags, the text a reader sees, and every attribute."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"{tag} has an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def values(self) -> list[float]:
        return [float(str(attributes["value"])) for tag, attributes in self.tags if tag == "data"]


def labels(items: int, names: Any, share: float = 1.0, seed: int = 0, yes: float = 0.4) -> Labels:
    rng = np.random.default_rng(seed)
    z = np.where(rng.random((items, len(names))) < yes, 1, -1)
    return Labels.from_ternary(np.where(rng.random(z.shape) < share, z, 0), names=names)


def guesses(truth: Labels, skill: float, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=truth.shape)
    return 1 / (1 + np.exp(-(skill * np.asarray(truth.ternary(), float) + noise)))


def run(title: str, observed: Labels, truth: Labels | None = None, skill: float = 1.0, seed: int = 0) -> RunView:
    known = {key: value for key, value in observed.summary().items() if not isinstance(value, list)}
    description = {
        "format": 1,
        "partly": "0.1.0",
        "recipe": {"method": "bce", "head": "mlp", "epochs": 3, "settings": {"v": 5.0}},
        "labels": list(observed.names),
        "features": None,
        "data": {"shape": [len(observed), 4], "sha256": "ab" * 32, "labels_sha256": "cd" * 32, "known": known},
        "validation": {"sha256": "ef" * 32, "labels_sha256": "01" * 32},
        "machine": {"python": "3.11.9", "torch": "2.13.0"},
        "started": "2025-01-02T03:04:05Z",
    }
    history = [{"epoch": e, "loss": 1 / e, "validation_mAP": score} for e, score in ((1, 0.3), (2, 0.6), (3, None))]
    probabilities = None if truth is None else guesses(truth, skill, seed)
    return RunView(title, description, history, 2, 75.0, "asked for", probabilities)


def demo() -> Report:
    """Three runs on pictures, one of them with a privilege."""
    names = [f"thing {j}" for j in range(22)]
    observed, truth = labels(300, names, 0.1), labels(80, names, seed=1)
    few = labels(30, names, seed=2)
    runs = (
        run("bce", observed, truth, 1.0),
        run("auto", observed, truth, 2.0),
        replace(run("everything", observed, truth, 4.0), privilege="all labels"),
    )
    shown = tuple(guesses(few, skill, 5) for skill in (1.0, 2.0, 4.0))
    pictures = np.random.default_rng(0).integers(0, 255, (30, 24, 24, 3), np.uint8)
    return Report(
        "A demo", observed, runs, truth, Examples(shown, few, labels(30, names, 0.2, seed=2), as_items(pictures))
    )


def features() -> Report:
    names = [f"label number {j}" for j in range(200)]
    observed, truth = labels(60, names, 0.2), labels(40, names, seed=1)
    return Report("Features", observed, (run("bce", observed, truth), run("other", observed, truth, seed=1)), truth)


def no_validation() -> Report:
    observed = labels(30, list("abcdef"), 0.5)
    view = run("bce", observed)
    history = [{"epoch": line["epoch"], "loss": line["loss"]} for line in view.history]
    return Report("Alone", observed, (replace(view, history=history, best_epoch=None),))


def unknown_columns() -> Report:
    """Of two labels nothing is known; of another only yes."""

    def hide(full: Labels) -> Labels:
        z = np.array(full.ternary())
        z[:, :2], z[:, 2] = 0, 1
        return Labels.from_ternary(z, names=full.names)

    observed, truth = (hide(labels(30, list("abcdef"), 0.5, seed=seed)) for seed in (0, 1))
    return Report("Holes", observed, (run("bce", observed, truth),), truth)


def only_yes() -> Report:
    observed = Labels.from_positives(np.eye(30, 6, dtype=int), names=list("abcdef"))
    view = run("assume-negative", observed, observed)
    history = [{"epoch": i, "loss": 0.5 / i, "validation_mAP_unknown_as_no": 0.4} for i in (1, 2)]
    return Report("Only yes", observed, (replace(view, history=history),), observed)


def nasty() -> Report:
    observed, truth = labels(30, NASTY, 0.5), labels(30, NASTY, 0.5, seed=1)
    view = replace(run("<u>run</u> \u202e", observed, truth), reason="<i>why</i>", history=[])
    return Report("<h1>title</h1>", observed, (view, replace(view, privilege="<b>all</b>")), truth)


CASES = [demo, features, no_validation, unknown_columns, only_yes, nasty]


@cache
def page_of(case: Callable[[], Report]) -> Page:
    return Page(report.render(case()))


@pytest.mark.parametrize("case", CASES)
def test_page_is_whole_and_needs_nothing_from_outside(case: Any, tmp_path: Path) -> None:
    made = case()
    report.write(made, tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text("utf-8")
    page = Page(html)
    for name in made.labels.names:
        assert " ".join(name.split()) in page.text
    assert not re.search(r"\bnan\b|None|\bundefined\.", page.text, re.I)
    bare = re.sub(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+|'sha256-[A-Za-z0-9+/=]+'", "", html)
    assert not re.search(r"https?:|//|@import|url\(|\bnan\b", bare)
    assert not {"link", "iframe", "object", "u"} & {tag for tag, _ in page.tags}
    *data, script = page.scripts  # counts, which are no script; and the one that the page lets run, by its digest
    assert script == layout.SCRIPT
    assert all(json.loads(part).keys() == {"steps", "first", "counts", "blind"} for part in data)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in html
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    assert pictures
    assert all(str(p["src"]).startswith("data:image/") and p["alt"] for p in pictures)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_same_input_gives_same_bytes_and_leaves_matplotlib_alone() -> None:
    before = dict(matplotlib.rcParams)
    first = report.render(demo()), report.draw_overview(demo())
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.size": 31.0, "lines.linewidth": 9.0}):  # the caller's taste stays outside
        assert (report.render(demo()), report.draw_overview(demo())) == first
    assert len(first[0]) < 1_500_000
    assert len(first[1]) < 300_000


def test_numbers_are_those_of_the_metrics() -> None:
    made, page = demo(), page_of(demo)
    shown = page.values()
    every = [metrics.evaluate(view.probabilities, made.truth) for view in made.runs]
    bars = [scores["mAP"] for scores in every]
    table = [scores[key] for scores in every for key in ("mAP", "CF1", "OF1", "P@1", "exact_match")]
    reported = [metrics.both(view.probabilities, made.truth)[0] for view in made.runs]
    assert all(scores.items() <= full.items() for scores, full in zip(reported, every, strict=True))
    whole = [scores[key] for key in reported[0] for scores in reported]
    ap = np.array([metrics.average_precision(view.probabilities, made.truth) for view in made.runs])
    by_label = ap[:, np.argsort(-ap[1], kind="stable")].T.ravel().tolist()  # "auto" is the best without privilege
    assert shown == bars + table + whole + by_label
    for scores in every:
        assert f"{scores['mAP']:.3f}" in page.text
        assert f"{scores['CF1']:.3f}" in page.text


def test_pictures_say_their_values_as_text() -> None:
    page = page_of(nasty)
    said = [json.loads(str(found["data-points"])) for _, found in page.tags if "data-points" in found]
    assert said
    for x, y, words in (point for points in said for point in points):
        assert 0 <= x <= 1
        assert 0 <= y <= 1
        assert words
    panels = [json.loads(str(found["data-points"])) for _, found in page_of(demo).tags if "data-points" in found]
    assert [words for *_, words in panels[0]][:2] == ["bce, epoch 1: 1", "bce, epoch 2: 0.5"]
    made = features()
    yes, _ = made.labels.counts()
    ap = metrics.average_precision(made.runs[0].probabilities, made.truth)
    scatter = json.loads(
        [str(found["data-points"]) for _, found in page_of(features).tags if "data-points" in found][2]
    )
    assert scatter[7][2] == f"label number 7, bce: AP {ap[7]:.3f}, {yes[7]} known yes"


def test_the_page_says_what_other_thresholds_give_without_a_script() -> None:
    made, page = demo(), page_of(demo)
    for threshold in (0.1, 0.5, 0.9):
        scores = metrics.evaluate(made.runs[1].probabilities, made.truth, threshold)
        numbers = " ".join(f"{scores[key]:.3f}" for key in (*operating_points.MICRO, *operating_points.MACRO))
        assert f" {threshold} {numbers} " in page.text
    table = metrics.by_label(made.runs[1].probabilities, made.truth)
    numbers = " ".join(f"{table[key][3]:.3f}" for key in ("precision", "recall", "F1"))
    assert f"thing 3 {numbers} {table['predicted'][3]} {table['yes'][3]} {table['no'][3]}" in page.text
    assert "Precision and recall at other thresholds" not in page_of(no_validation).text
    assert "Precision and recall at other thresholds" not in page_of(only_yes).text


def test_label_rows_show_what_was_known_in_training() -> None:
    made = unknown_columns()
    yes, no = made.labels.counts()
    text = page_of(unknown_columns).text
    assert f"a – {yes[0]} {no[0]}" in text
    ap = metrics.average_precision(made.runs[0].probabilities, made.truth)
    assert f"d {ap[3]:.3f} ● {yes[3]} {no[3]}" in text
    assert "AP is undefined for 3 of 6 labels" in text


def test_undefined_scores_say_so() -> None:
    text = page_of(only_yes).text
    assert "No mAP: no label has both a known yes and a known no" in text
    assert "every prediction of yes would count as right" in text
    assert text.count("–") >= 8  # the bar, two tables and six labels
    assert "validation mAP, unknown treated as no" in text


def test_one_epoch_is_no_curve() -> None:
    report = only_yes()
    short = tuple(replace(view, history=view.history[:1]) for view in report.runs)
    texts = [page_of(lambda part=part: part).text for part in (report, replace(report, runs=short))]
    assert ["validation mAP, unknown treated as no" in text for text in texts] == [True, False]


def test_a_run_without_evaluation_items_has_no_scores() -> None:
    page = page_of(no_validation)
    assert "without evaluation items" in page.text
    assert page.values() == []
    assert "the last epoch of 3" in page.text
    assert sum(tag == "img" for tag, _ in page.tags) == 2  # the matrix and the loss


def test_curves_mark_the_best_epoch() -> None:
    made, page = demo(), page_of(demo)
    assert "bce epoch 2 of 3" in page.text
    none = replace(made, runs=tuple(replace(view, best_epoch=None) for view in made.runs))
    assert report._draw_learning_curves(report.summary.score_runs(made.runs, None)) != report._draw_learning_curves(
        report.summary.score_runs(none.runs, None)
    )


def test_markup_from_the_data_stays_text() -> None:
    page = page_of(nasty)
    for words in ("<h1>title</h1>", "<script>alert(1)</script>", "<u>run</u>", "<i>why</i>", "saw <b>all</b>"):
        assert words in page.text
    assert sum(tag == "h1" for tag, _ in page.tags) == 1


def test_what_was_run_is_all_there() -> None:
    text = page_of(demo).text
    for words in ("recipe · settings · v 5.0", "data · sha256 " + "ab" * 32, "validation · labels_sha256 " + "01" * 32):
        assert words in text
    for words in ("machine · torch 2.13.0", "started 2025-01-02T03:04:05Z", "labels 22", "1 min 15 s", "seconds 75.0"):
        assert words in text


def test_history_is_listed() -> None:
    assert "epoch loss validation mAP 1 1 0.3 2 0.5 0.6 3 0.3333 undefined" in page_of(demo).text


def test_many_labels_show_extremes_first_and_never_an_undefined_one_as_weakest() -> None:
    made = features()
    z = np.array(made.truth.ternary()) if made.truth else np.zeros(0)
    z[:, 7] = -1
    made = replace(made, truth=Labels.from_ternary(z, names=made.labels.names))
    html = report.render(made)
    tables = re.findall(r'<table class="labels sortable">.*?</table>', html, re.S)
    assert [table.count('<th scope="row">') for table in tables] == [10, 10, 200]
    assert ["–" in table for table in tables] == [False, False, True]


def test_matrix_is_a_sample_at_even_distances() -> None:
    observed = labels(1000, [f"{j}" for j in range(300)], 0.3)
    known = report._describe_labels(observed)
    items, columns = np.linspace(0, 999, 40).round().astype(int), np.linspace(0, 299, 200).round().astype(int)
    np.testing.assert_array_equal(known["z"], np.asarray(observed.ternary())[items][:, columns])
    assert known["names"] == []
    small = report._describe_labels(labels(3, list("ab"), 0.5))
    assert small["z"].shape == (3, 2)
    assert small["names"] == ["a", "b"]


def test_examples_show_the_best_run() -> None:
    made = demo()
    assert "Predictions of auto for some of 30 items" in page_of(demo).text
    swapped = replace(made, runs=(made.runs[1], made.runs[0], made.runs[2]))
    shown = report._choose_examples(swapped, runs := report.summary.score_runs(swapped.runs, swapped.truth), runs[0])
    assert shown is not None
    assert shown["title"] == "auto"
    assert made.examples is not None
    np.testing.assert_array_equal(shown["of"].probabilities[0], made.examples.probabilities[0])


def test_evidence_is_that_of_the_best_run_for_the_label_of_the_card() -> None:
    made = demo()
    asked: list[tuple[str, int, list[int]]] = []

    def seeks(name: str) -> Any:
        def evidence(items: Any, at: Any) -> Any:
            asked.append((name, len(items), list(at)))
            places = np.zeros((len(items), 2, 2), np.float32)
            places[1:, 0, 0] = 1  # nothing speaks for the first
            return places

        return evidence

    assert made.examples is not None
    runs = ("bce", "auto", "everything")
    text = Page(report.render(replace(made, examples=replace(made.examples, evidence=tuple(map(seeks, runs)))))).text
    shown = report.choose_examples(
        replace(made.examples, probabilities=made.examples.probabilities[1:2]), made.labels.names
    )
    assert asked == [("auto", len(shown), [card.label for card in shown])]
    assert text.count("; evidence for") == len(shown) - 1
    assert text.count("; no evidence for") == 1
    assert "evidence" not in page_of(demo).text


def test_texts_are_cut_and_stay_text() -> None:
    made = nasty()
    said = ["<script>alert(2)</script> " + "word " * 200] * 30
    shown = Examples((made.runs[0].probabilities,) * 2, made.truth, items=texts(said))
    page = Page(report.render(replace(made, examples=shown)))
    assert "<script>alert(2)</script> word" in page.text
    assert page.text.count("…") == page.text.count("alert(2)") == 9  # six at even distances, three that are wrong
    assert page.text.count("word") < 9 * 60


def test_own_thresholds_stand_beside_the_usual_one() -> None:
    observed, truth = labels(30, list("abc"), 0.5), labels(40, list("abc"), seed=1)
    view = run("auto", observed, truth)
    own = np.array([0.3, 0.6, 0.4])
    page = Page(report.render(Report("t", observed, (replace(view, thresholds=own),), truth)))
    assert "at per-label thresholds" in page.text
    found = metrics.evaluate(view.probabilities, truth, own)
    assert {found["CF1"], found["exact_match"]} <= set(page.values())
    assert "the line in its bar" in page.text
    assert "per-label thresholds" not in page_of(no_validation).text


def test_view_of_a_classifier_and_the_report_about_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    truth = Labels.from_full((x[:, :2] > 0).astype(int), names=["first", "second"])
    model = Classifier("bce", head="linear", epochs=2, progress=False).fit(x, truth, validation=(x, truth))
    view = report.view_run(
        "mine", model.fitted_.description, model.fitted_.progress, model.reason_, model.predict_proba(x)
    )
    np.testing.assert_array_equal(view.probabilities, model.predict_proba(x))
    assert (view.best_epoch, view.history, view.reason) == (model.best_epoch_, model.history_, model.reason_)
    assert view.description["recipe"]["method"] == "bce"
    report.write(Report("t", truth, (view,), truth), tmp_path / "r.html")
    text = Page((tmp_path / "r.html").read_text("utf-8")).text
    assert "on the training items" in text
    assert "used to choose the best epoch" in text
    assert not math.isnan(view.seconds)


def test_what_does_not_fit_together_is_refused_in_one_message() -> None:
    made = demo()
    assert made.examples is not None
    wrong = replace(
        made,
        truth=labels(80, [f"other {j}" for j in range(22)]),
        examples=replace(
            made.examples, probabilities=made.examples.probabilities[:2], given=labels(7, made.labels.names)
        ),
    )
    with pytest.raises(DataError) as error:
        report.render(wrong)
    for words in ("'A demo'", "of 2 runs, not of 3", "truth: other labels", "examples: of 7 and 30 items"):
        assert words in str(error.value)
    for view in (np.zeros((80, 3)), np.full((80, 22), np.nan)):
        with pytest.raises(DataError, match="must be items x 22, without NaN"):
            report.render(replace(made, runs=(replace(made.runs[0], probabilities=view),), examples=None))
    with pytest.raises(DataError, match="no run"):
        report.render(replace(made, runs=(), examples=None))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere.report\.html: cannot be written"):
        report.write(no_validation(), tmp_path / "nowhere" / "report.html")


@pytest.mark.parametrize("case", CASES)
def test_picture_renders(case: Any, tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(report.draw_overview(case()))
    with Image.open(tmp_path / "p.png") as image:
        assert image.size == (1560, 624)
