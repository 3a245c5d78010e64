"""`partly demo`: train on digits with few known labels and on texts with none, and write a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from partly.cli.app import command
from partly.cli.options import Json, Seed, option
from partly.cli.printing import print_scores, say, summarize

if TYPE_CHECKING:
    from partly.report import demo_page, page

SCENARIO = "single-positive"
NAIVE, UPPER = "unknown treated as no", "all labels known"


@command("Start")
def demo(
    out: Annotated[Path, option("Folder for the runs and the report.")] = Path("demo"),
    items: Annotated[int, option("Number of digits to train on.")] = 1200,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train on handwritten digits and short texts, and write a report.

    One positive label per digit is known. Compares logistic regression that treats unknown as no, `auto`, and a model
    that knows every label. Of the texts no label is known: the names of the topics score them, before and after ten
    answers.
    """
    from partly import scenarios
    from partly.atomic_io import write_file
    from partly.cli._reporting import build_report, list_scores
    from partly.data import split_holdout
    from partly.data.formats.digits import digits, to_images
    from partly.estimators.classifier import Classifier
    from partly.report import demo_page, page

    truth = digits(train=items, seed=seed)
    data = replace(truth, labels=scenarios.parse(SCENARIO)(truth.labels, seed), truth=truth.labels)
    say(f"digits, one positive label per item: {summarize(data.labels.summary())}")
    fit, hold = split_holdout(len(data.labels), 0.2, seed)
    models = {}
    for title, method, head, labels in (
        (NAIVE, "assume-negative", "linear", data.labels),
        ("auto", "auto", "auto", data.labels),
        (UPPER, "auto", "auto", truth.labels),
    ):
        model = Classifier(method, head=head, seed=seed, run_dir=out / title.replace(" ", "-"))
        model.fit(data.items[fit], labels[fit], validation=(data.items[hold], labels[hold]))
        say(f"Trained: {title}")
        models[title] = model.fitted_
    report = build_report(
        "Digits, one positive label known per item", models, data, fit, hold, upper=UPPER, draw=to_images
    )
    page.write(report, out / "report.html")
    write_file(out / "report.png", page.draw_overview(report))
    sections = [_compare_on_digits(report, len(fit), data.labels.summary()["known_share"]), _score_texts(seed)]
    demo_page.write("Learning from few labels, and from none", sections, out / "summary.html")
    print_scores(list_scores(report), out / "report.html", as_json)
    say(f"Summary: {out / 'summary.html'} (open this first)")


def _compare_on_digits(report: page.Report, items: int, known_share: float) -> demo_page.Section:
    """Compare the ranking and the decisions of the three models."""
    from partly.report.demo_page import Section

    rank = {run.view.title: run.mean_ap for run in report.run_scores}
    decide = {run.view.title: (run.scores or {}).get("OF1", float("nan")) for run in report.run_scores}
    pair = {name: f"{_points(rank[name])} and {_points(decide[name])}" for name in rank}
    result = (
        f"The default, auto, scores {_points(rank['auto'])} for ranking and {_points(decide['auto'])} for yes / no "
        f"decisions. Treating unknown as no scores {pair[NAIVE]}; knowing every label, {pair[UPPER]}."
    )
    return Section(
        "Digits: one label of each is known",
        result,
        f"{items:,} pictures to learn from. {100 * (1 - known_share):.0f} % of their labels are hidden.",
        {"Ranking (mean average precision)": rank, "Decisions at a probability of 0.5 (F1)": decide},
        ("auto",),
        "report.html",
    )


def _score_texts(seed: int) -> demo_page.Section:
    """Score texts without any label by the names of their topics, if the text encoder is installed."""
    from partly.cli import _demo_names
    from partly.report.demo_page import Section

    title = "Texts: no label is known"
    if not _demo_names.is_encoder_installed():
        text = "Left out: the text encoder is not installed. Install the extra: pip install 'partly[text]'."
        say(f"{title}. {text}")
        return Section(title, text)
    data, scores = _demo_names.run(seed)
    say(f"{title} (mAP of 100)")
    for name, score in scores.items():
        say(f"  {_points(score):>3}  {name}")
    half = len(data.items) // 2
    ours = (_demo_names.NAMES_ONLY, _demo_names.NAMES_AND_ANSWERS)
    result = (
        f"The names of the topics alone score {_points(scores[ours[0]])}, before anyone has answered. "
        f"With {_demo_names.QUESTIONS} answers: {_points(scores[ours[1]])}."
    )
    text = (
        f"{half} short texts to learn from and {len(data.items) - half} to score. "
        f"Topics: {', '.join(data.labels.names)}. A pretrained encoder knows what the names mean. "
        "The answers are simulated: each says whether one text is about one topic."
    )
    return Section(title, result, text, {"Ranking (mean average precision)": scores}, ours)


def _points(score: float) -> str:
    return f"{100 * score:.0f}"
