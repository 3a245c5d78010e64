"""`partly demo`: what partly known labels cost, and what is to be had of them, on handwritten digits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from partly import scenarios
from partly.atomic_io import write_file
from partly.cli.opening import Say
from partly.cli.reporting import Scores, report, scores
from partly.data import held_out
from partly.data.formats.digits import digits, pictures
from partly.engine import Fitted
from partly.estimators.classifier import Classifier
from partly.report import page

SCENARIO = "single-positive"


def demo(out: Path, *, items: int = 1200, seed: int = 0, say: Say = print) -> Scores:
    """One yes known of each digit: plain logistic regression that takes unknown for no, `auto`, and the model that
    knows everything."""
    whole = digits(train=items, seed=seed)
    data = replace(whole, labels=scenarios.parse(SCENARIO)(whole.labels, seed), truth=whole.labels)
    say(f"digits: {data.labels!r}")
    fit, hold = held_out(len(data.labels), 0.2, seed)
    models: dict[str, Fitted] = {}
    for title, method, head, labels in (
        ("unknown taken for no", "assume-negative", "linear", data.labels),
        ("auto", "auto", "auto", data.labels),
        ("all labels known", "auto", "auto", whole.labels),
    ):
        model = Classifier(method, head=head, seed=seed, run_dir=out / title.replace(" ", "-"))
        model.fit(data.items[fit], labels[fit], validation=(data.items[hold], labels[hold]))
        say(f"{title}: {model.method_} ({model.reason_})")
        models[title] = model.fitted_
    made = report("Digits, one yes known of each", models, data, fit, hold, upper="all labels known", drawn=pictures)
    page.write(made, out / "report.html")
    write_file(out / "report.png", page.draw_overview(made))  # the README shows it
    return scores(made)
