"""`partly demo`: train on handwritten digits with few known labels and write a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from partly.cli.app import command
from partly.cli.options import Json, Seed, option
from partly.cli.printing import print_scores, say, summarize

SCENARIO = "single-positive"


@command("Start")
def demo(
    out: Annotated[Path, option("Folder for the runs and the report.")] = Path("demo"),
    items: Annotated[int, option("Number of digits to train on.")] = 1200,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train on handwritten digits and write a report.

    One positive label per digit is known. Compares logistic regression that treats unknown as no, `auto`, and a model
    that knows every label.
    """
    from partly import scenarios
    from partly.atomic_io import write_file
    from partly.cli._reporting import build_report, list_scores
    from partly.data import split_holdout
    from partly.data.formats.digits import digits, to_images
    from partly.estimators.classifier import Classifier
    from partly.report import page

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
    print_scores(list_scores(report), out / "report.html", as_json)
