"""`partly demo`: what partly known labels cost, and what is to be had of them, on the built-in pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from partly import scenarios
from partly.commands.opening import Say
from partly.commands.reporting import Scores, report, scores
from partly.data import held_out
from partly.data.scenes import scenes
from partly.estimator import Classifier
from partly.files import write_file
from partly.report import page

SCENARIO = "uniform:0.1"


def demo(out: Path, *, items: int = 2000, seed: int = 0, say: Say = print) -> Scores:
    """`bce` and `auto` on the built-in pictures with 10 % known, beside the model that knows everything."""
    whole = scenes(train=items, seed=seed)
    data = replace(whole, labels=scenarios.parse(SCENARIO)(whole.labels, seed), truth=whole.labels)
    say(f"scenes: {data.labels!r}")
    fit, hold = held_out(len(data.labels), 0.2, seed)
    models: dict[str, Classifier] = {}
    for title, method, labels in (
        ("bce", "bce", data.labels),
        ("auto", "auto", data.labels),
        ("all labels known", "bce", whole.labels),
    ):
        model = Classifier(method, head="linear", seed=seed, run_dir=out / title.replace(" ", "-"))
        model.fit(data.items[fit], labels[fit], validation=(data.items[hold], labels[hold]))
        say(f"{title}: {model.method_} ({model.reason_})")
        models[title] = model
    made = report("Pictures with 10 % of the entries known", models, data, fit, hold, upper="all labels known")
    page.write(made, out / "report.html")
    write_file(out / "report.png", page.picture(made))  # the README shows it
    return scores(made)
