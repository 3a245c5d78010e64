"""The jobs of the command line, callable from Python: each opens its data, calls the library and writes its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import catalogue, checkpoint, comparison, metrics, report, scenarios
from partly import data as files
from partly.comparison import runner
from partly.comparison.plan import parse_settings
from partly.data.matching import positions, read_matching
from partly.data.scenes import scenes
from partly.data.sets import open_split
from partly.data.split import held_out
from partly.errors import DataError
from partly.estimator import Classifier
from partly.examples import Examples
from partly.hierarchy import Hierarchy
from partly.labels import Labels

Say = Callable[[str], None]
Scores = dict[str, dict[str, float]]
Index = npt.NDArray[np.int64]
DEMO_SCENARIO = "uniform:0.1"


@dataclass(frozen=True)
class Opened:
    """Items to learn from with their observed labels; their truth and a test part where the data has them."""

    x: npt.NDArray[Any]
    labels: Labels
    truth: Labels | None = None
    test_x: npt.NDArray[Any] | None = None
    test: Labels | None = None
    hierarchy: Hierarchy | None = None


def demo(out: Path, *, items: int = 2000, seed: int = 0, say: Say = print) -> Scores:
    """`bce` and `auto` on the built-in pictures with 10 % known, beside the model that knows everything."""
    split = scenes(train=items, seed=seed)
    observed = scenarios.parse(DEMO_SCENARIO)(split.train, seed)
    say(f"scenes: {observed!r}")
    fit, hold = held_out(len(observed), 0.2, seed)
    models: dict[str, Classifier] = {}
    for title, method, labels in (
        ("bce", "bce", observed),
        ("auto", "auto", observed),
        ("all labels known", "bce", split.train),
    ):
        model = Classifier(method, head="linear", seed=seed, run_dir=out / title.replace(" ", "-"))
        model.fit(split.train_x[fit], labels[fit], validation=(split.train_x[hold], labels[hold]))
        say(f"{title}: {model.method_} ({model.reason_})")
        models[title] = model
    opened = Opened(split.train_x, observed, split.train, split.test_x, split.test)
    page = _report("Pictures with 10 % of the entries known", models, opened, fit, hold, upper="all labels known")
    report.write(page, out / "report.html")
    checkpoint.write_file(out / "report.png", report.picture(page))  # the README shows it
    return _scores(page)


def train(
    data: str,
    run: Path,
    *,
    labels: Path | None = None,
    scenario: str | None = None,
    hold_out: float = 0.2,
    parameters: dict[str, Any],
    say: Say = print,
) -> Scores:
    """Train one classifier into a run folder; the report goes there too."""
    opened = open_data(data, labels, scenario, parameters["seed"])
    say(f"{data}: {opened.labels!r}")
    model = Classifier(**parameters | {"settings": parse_settings(parameters["settings"])}, run_dir=run)
    fit, hold = held_out(len(opened.labels), hold_out, model.seed)
    validation = (opened.x[hold], opened.labels[hold]) if len(hold) else None
    model.fit(opened.x[fit], opened.labels[fit], validation=validation)
    say(f"{model.method_}: {model.reason_}")
    page = _report(f"{data}: {model.method_}", {model.method_: model}, opened, fit, hold)
    report.write(page, run / "report.html")
    return _scores(page)


def _report(
    title: str, models: dict[str, Classifier], opened: Opened, fit: Index, hold: Index, upper: str = ""
) -> report.Report:
    """Scores on the test part, or else on the held-out items; examples from the held-out items, or else any."""
    shown = hold if len(hold) else fit
    if opened.test is not None:
        x, labels = opened.test_x, opened.test
    else:
        x, labels = opened.x[shown], opened.labels[shown]
    runs = [report.view(name, model, x, "all labels" if name == upper else "") for name, model in models.items()]
    shown = shown[:200]
    examples = Examples(
        tuple(model.predict_proba(opened.x[shown]) for model in models.values()),
        truth=None if opened.truth is None else opened.truth[shown],
        given=opened.labels[shown],
        pictures=opened.x[shown] if opened.x.ndim == 4 else None,
    )
    return report.Report(title, opened.labels[fit], tuple(runs), labels, examples)


def _scores(page: report.Report) -> Scores:
    return {run.title: metrics.evaluate(run.probabilities, page.truth) for run in page.runs}


def predict(run: Path, data: str, out: Path, known: Path | None = None) -> int:
    """Probabilities of a finished run for the test part of a data set, or for a table of features.

    known: labels of some of these items, matched by id and by name, for a head that makes use of them.
    """
    model = Classifier.load(run)
    split = open_split(data)
    x, ids = (split.test_x, split.test.ids) if split else files.read_features(data)
    given = None if known is None else _known(known, data, ids, run, model.label_names_)
    files.write_scores(out, model.predict_proba(x, given), ids, model.label_names_)
    return len(ids)


def _known(known: Path, data: str, ids: Sequence[str], run: Path, names: Sequence[str]) -> Labels:
    """What a file says of items of `data` and labels of `run`; what it does not name is unknown."""
    labels = files.read_labels(known)
    rows, columns = positions(labels.ids, ids, data, "known item"), positions(labels.names, names, run, "known label")
    row, column, values = labels.entries()
    return Labels._from_codes(rows[row], columns[column], values, names, ids)


def evaluate(scores: Path, labels: str, threshold: float = 0.5) -> dict[str, float]:
    """Probabilities in a file against labels in a file; items and labels are matched by id and by name."""
    split = open_split(labels)
    truth = split.test if split else files.read_labels(labels)
    probabilities, ids, names = files.read_scores(scores)
    rows, columns = positions(truth.ids, ids, scores, "item"), positions(truth.names, names, scores, "label")
    return metrics.evaluate(probabilities[np.ix_(rows, columns)], truth, threshold)


def simulate(data: str, scenario: str, out: Path, seed: int = 0) -> Labels:
    """Labels of which a scenario has hidden a part, written to a file."""
    split = open_split(data)
    truth = split.train if split else files.read_labels(data)
    observed = scenarios.parse(scenario)(truth, seed, split.hierarchy if split else None)
    files.write_labels(observed, out)
    return observed


def compare(data: str, out: Path, *, asked: dict[str, Any], workers: int | None = None, say: Say = print) -> Path:
    """Run a comparison, say its table, and write its page; `data` may be an experiment file."""
    from partly.comparison import areas, page, tables

    if data.endswith(".toml"):
        experiment = comparison.read_experiment(Path(data))
    else:
        methods = list(catalogue.discover()) if asked["methods"] == ["all"] else asked["methods"]
        experiment = comparison.Experiment(tuple(data.split(",")), **asked | {"methods": methods})
    lines = runner.run(experiment, out, workers)
    say(areas.markdown(lines) if experiment.queries else tables.markdown(lines, over=experiment.over))
    for number, group in enumerate(areas.groups(lines).values()):
        checkpoint.write_file(out / f"{experiment.name}-{number}.svg", areas.picture(group))
    path = out / f"{experiment.name}.html"
    page.write(lines, path, title=experiment.title or experiment.name, over=experiment.over)
    return path


def study(data: str, out: Path, *, asked: dict[str, Any], workers: int | None = None, say: Say = print) -> Path:
    """Run a study of ways to annotate, and say its answer; `data` may be an experiment file."""
    from partly import study as studies

    if data.endswith(".toml"):
        experiment = comparison.read_experiment(Path(data))
        name, found = experiment.name, studies.run(experiment, out, workers)
    else:
        name, found = "study", [studies.study(data, **asked, out=out, workers=workers)]
    for one in found:
        say(f"{one.data}, {one.head}: {studies.answer(one)}\n\n" + "\n".join(studies.table(one)))
    return out / f"{name}.md"


def open_data(data: str, labels: Path | None, scenario: str | None, seed: int) -> Opened:
    """A data set by name or file, with the labels that a file or a scenario gives it."""
    split = open_split(data)
    if split is None:
        if labels is None:
            raise DataError(f"{data}: a table of features needs --labels with the observed labels.")
        observed = files.read_labels(labels)
        opened = Opened(read_matching(data, observed.ids), observed)
    else:
        observed = split.train if labels is None else files.read_labels(labels)
        rows = positions(observed.ids, split.train.ids, data, "item")
        opened = Opened(split.train_x[rows], observed, split.train[rows], split.test_x, split.test, split.hierarchy)
    if scenario is not None:
        played = scenarios.parse(scenario)(opened.labels, seed, opened.hierarchy)
        opened = replace(opened, labels=played)
    return opened
