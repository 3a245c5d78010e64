"""`partly demo`: train on digits with few known labels and on texts with none, and write a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from partly.cli.app import command
from partly.cli.options import Json, Seed, option
from partly.cli.printing import print_scores, say, summarize

if TYPE_CHECKING:
    from partly.report import demo_page

SCENARIO = "single-positive"


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
        ("unknown treated as no", "assume-negative", "linear", data.labels),
        ("auto", "auto", "auto", data.labels),
        ("all labels known", "auto", "auto", truth.labels),
    ):
        model = Classifier(method, head=head, seed=seed, run_dir=out / title.replace(" ", "-"))
        model.fit(data.items[fit], labels[fit], validation=(data.items[hold], labels[hold]))
        say(f"Trained: {title}")
        models[title] = model.fitted_
    report = build_report(
        "Digits, one positive label known per item", models, data, fit, hold, upper="all labels known", draw=to_images
    )
    page.write(report, out / "report.html")
    write_file(out / "report.png", page.draw_overview(report))  # shown in the README
    first = demo_page.Act(
        "Digits: one label of each is known",
        f"{len(fit)} pictures; 93 % of the entries are unknown. report.html has the details.",
        {run.view.title: run.mean_ap for run in report.run_scores},
    )
    demo_page.write("What a few labels are enough for, and none", [first, _act_of_names(seed)], out / "summary.html")
    say(f"Summary: {out / 'summary.html'}")
    print_scores(list_scores(report), out / "report.html", as_json)


def _act_of_names(seed: int) -> demo_page.Act:
    """Score texts without any label by the names of their topics, if the text encoder is installed."""
    from partly.cli import _demo_names
    from partly.report.demo_page import Act

    title = "Texts: no label is known"
    if not _demo_names.is_encoder_installed():
        text = "Left out: the text encoder is not installed. Install the extra: pip install 'partly[text]'."
        say(f"{title}. {text}")
        return Act(title, text)
    data, scores = _demo_names.run(seed)
    say(f"{title}: " + "; ".join(f"{name} {100 * score:.0f}" for name, score in scores.items()) + " mAP")
    half = len(data.items) // 2
    text = (
        f"{half} short texts to learn from and {len(data.items) - half} to score, with the topics "
        f"{', '.join(data.labels.names)}. A pretrained encoder knows what the names mean. The answers are simulated: "
        "yes or no to one topic of one text each."
    )
    return Act(title, text, scores)
