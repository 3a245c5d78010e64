"""The report of models that a command trained, and their scores as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.cli._datasets import with_ids
from partly.data import Dataset
from partly.engine import FittedModel, activation
from partly.items import image_array, source_items
from partly.report import page
from partly.report.examples import Examples, evenly_spaced
from partly.report.model_view import Rows, view_model

Scores = dict[str, dict[str, float]]
Index = npt.NDArray[np.int64]
MAX_EXAMPLE_ITEMS = 200  # from which examples are chosen


def build_report(
    title: str,
    models: Mapping[str, FittedModel],
    data: Dataset,
    fit: Index,
    hold: Index,
    upper: str = "",
    draw: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.uint8]] | None = None,
    evidence: bool = False,
    examples_by: Mapping[str, FittedModel] | None = None,
) -> page.Report:
    """Return a report with scores on the test part, else on the held-out items, else on the training items.

    Parameters
    ----------
    title : str
        Title of the page.
    models : mapping
        Models by name. Each item is predicted once, and only scores of known entries are kept.
    data : Dataset
        All items, and the test part if there is one.
    fit, hold : array of int
        Rows that were trained on and held out; examples come from the latter.
    upper : str
        Name of the model that saw all labels.
    draw : callable, optional
        Turns features into images.
    evidence : bool
        Show where in images the evidence is.
    examples_by : mapping, optional
        Models that have not seen the held-out items, where `models` have.
    """
    rows = hold if len(hold) else fit
    subset = data[rows]
    evaluated = data.test or subset
    chosen = evenly_spaced(len(subset.items), MAX_EXAMPLE_ITEMS)
    examples = subset[chosen]
    runs, predicted = [], list[npt.NDArray[np.float32]]()
    for name, model in models.items():
        privilege = "all labels" if name == upper else "the truth" if model.method.needs_truth else ""
        blocks = list[npt.NDArray[np.float32]]()
        observe = partial(_collect, chosen=chosen, parts=blocks)
        runs.append(view_model(name, model, evaluated.items, evaluated.labels, privilege, observe))
        example_model = (model if examples_by is None else examples_by[name]).taught_by(ids=examples.labels.given_ids)
        predicted.append(example_model.predict(examples.items) if data.test is not None else np.concatenate(blocks))
    items = (
        source_items(examples.items) if draw is None else image_array(draw(examples.items.take(slice(None)).numpy()))
    )
    maps = tuple(partial(activation, model) for model in models.values()) if evidence else ()
    positions = rows[chosen]  # an item without an id is named by its position in the data
    truth = None if data.truth is None else with_ids(data.truth, positions)
    shown_examples = Examples(tuple(predicted), truth, with_ids(data.labels, positions), items, maps)
    return page.Report(title, data.labels[fit], tuple(runs), evaluated.labels, shown_examples)


def _collect(blocks: Rows, chosen: Index, parts: list[npt.NDArray[np.float32]]) -> Rows:
    """Pass blocks on, and keep the rows of chosen items."""
    for rows, block in blocks:
        parts.append(block[chosen[(chosen >= rows.start) & (chosen < rows.stop)] - rows.start])
        yield rows, block


def part_name(data: Dataset, hold: Index) -> str:
    """Return the name of the part that scores are on."""
    return "test" if data.test is not None else "held-out" if len(hold) else "training"


def score_record(report: page.Report, data: Dataset, hold: Index) -> dict[str, Any]:
    """Return the scores of a report of one run as plain values, with what they were measured on."""
    (run,), truth = report.run_scores, report.truth
    assert truth is not None
    assert run.ap is not None
    yes, no = truth.counts()
    record: dict[str, Any] = {"part": part_name(data, hold), "items": len(truth), "scores": run.scores}
    if run.own is not None:
        record["at_own_thresholds"] = run.own
    if run.missing is not None and run.missing.biased:
        shares = {"yes_known": run.missing.yes_known, "no_known": run.missing.no_known}
        test = {"kind": run.missing.kind, "p": run.missing.p_value, "words": run.missing.describe()}
        record |= {"missing": test | shares, "uncorrected": run.uncorrected}
    return record | {"by_label": {"AP": run.ap.tolist(), "yes": yes.tolist(), "no": no.tolist()}}


def list_scores(report: page.Report) -> Scores:
    """Return the scores of every run at 0.5, and at its own thresholds where it has some."""
    scores = {run.view.title: run.scores for run in report.run_scores if run.scores is not None}
    own_scores = {
        run.view.title: run.own for run in report.run_scores if run.scores is not None and run.own is not None
    }
    return scores | {f"{title}, own thresholds": values for title, values in own_scores.items()}
