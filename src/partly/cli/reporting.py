"""The report of models that were trained by a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.cli.opening import some as named
from partly.data import Dataset
from partly.engine import FittedModel, activation
from partly.items import made_of, pictures
from partly.labels.scored import KnownScores, enumerate_rows, gather_known
from partly.model_choice.missingness import EntrySums
from partly.report import page
from partly.report.examples import Examples, evenly_spaced

Scores = dict[str, dict[str, float]]
Rows = Iterator[tuple[slice, npt.NDArray[np.float32]]]
Index = npt.NDArray[np.int64]
SHOWN = 200  # items to choose examples from


def report(
    title: str,
    models: Mapping[str, FittedModel],
    data: Dataset,
    fit: Index,
    hold: Index,
    upper: str = "",
    drawn: Callable[[npt.NDArray[np.float32]], npt.NDArray[np.uint8]] | None = None,
    evidence: bool = False,
    examples_by: Mapping[str, FittedModel] | None = None,
) -> page.Report:
    """Scores on the test part, or else on the held-out items (or, without any, on those of training); examples from the
    held-out items. Every item is predicted once, and of that only scores of known entries are kept. upper: the run
    that saw all labels; drawn: how features are shown as pictures, where they can be; evidence: show where in the
    pictures it is; examples_by: models that have not seen the held-out items, where `models` have."""
    shown = data[hold if len(hold) else fit]
    evaluated = data.test or shown
    at = evenly_spaced(len(shown.items), SHOWN)
    some = shown[at]
    runs, predicted = [], list[npt.NDArray[np.float32]]()
    for name, model in models.items():
        passed = list[npt.NDArray[np.float32]]()
        entries = EntrySums(evaluated.labels)
        taught = model.taught_by(ids=evaluated.labels.given_ids)
        blocks = entries.passing(enumerate_rows(taught.predict_blocks(evaluated.items)))
        known = gather_known(blocks if data.test is not None else _keeping(blocks, at, passed), evaluated.labels)
        runs.append(_view(name, model, known, name == upper, entries))
        shows = model if examples_by is None else examples_by[name]
        shows = shows.taught_by(ids=some.labels.given_ids)
        predicted.append(shows.predict(some.items) if data.test is not None else np.concatenate(passed))
    items = made_of(some.items) if drawn is None else pictures(drawn(some.items.take(slice(None)).numpy()))
    found = tuple(partial(activation, model) for model in models.values()) if evidence else ()
    among_all = (hold if len(hold) else fit)[at]  # so that who has no id is named by its place in the data
    given = named(data.labels, among_all)
    truth = None if data.truth is None else named(data.truth, among_all)
    examples = Examples(tuple(predicted), truth, given, items, found)
    return page.Report(title, data.labels[fit], tuple(runs), evaluated.labels, examples)


def _keeping(blocks: Rows, at: Index, found: list[npt.NDArray[np.float32]]) -> Rows:
    """The same blocks; the rows at some positions are kept aside as they pass."""
    for rows, block in blocks:
        found.append(block[at[(at >= rows.start) & (at < rows.stop)] - rows.start])
        yield rows, block


def _view(name: str, model: FittedModel, probabilities: KnownScores, saw_all: bool, entries: EntrySums) -> page.RunView:
    privilege = "all labels" if saw_all else "the truth" if model.method.needs_truth else ""
    own = model.thresholds if model.has_thresholds else None
    notes = () if model.calibration is None else model.calibration.describe(model.names)
    return page.view_run(
        name,
        model.description,
        model.progress,
        model.reason,
        probabilities,
        privilege,
        own,
        notes,
        entries,
        teacher=None if model.teaching is None else model.teaching.combination.weights(),
    )


def measured(made: page.Report, data: Dataset, hold: Index) -> dict[str, Any]:
    """The scores of a report of one run as plain values, with what they were measured on."""
    (run,), truth = made.scored, made.truth
    assert truth is not None
    assert run.ap is not None
    part = "test" if data.test is not None else "held-out" if len(hold) else "training"
    yes, no = truth.counts()
    by_label = {"AP": run.ap.tolist(), "yes": yes.tolist(), "no": no.tolist()}
    found: dict[str, Any] = {"part": part, "items": len(truth), "scores": run.scores}
    if run.own is not None:
        found["at_own_thresholds"] = run.own
    if run.missing is not None and run.missing.biased:
        shares = {"yes_known": run.missing.yes_known, "no_known": run.missing.no_known}
        test = {"kind": run.missing.kind, "p": run.missing.p_value, "words": run.missing.describe()}
        found |= {"missing": test | shares, "uncorrected": run.uncorrected}
    return found | {"by_label": by_label}


def scores(made: page.Report) -> Scores:
    """Of every run, at one half, and at its own thresholds where it has some."""
    able = [run for run in made.scored if run.scores is not None]
    at_half = {run.view.title: run.scores for run in able if run.scores is not None}
    return at_half | {f"{run.view.title}, at its own thresholds": run.own for run in able if run.own is not None}
