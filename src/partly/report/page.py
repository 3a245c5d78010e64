"""report.html: one self-contained file about one run, or about several runs on the same labels.

This module collects the contents; templates/report.html lays them out. All scores come from `partly.metrics`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.atomic_io import write_file
from partly.engine.training import Progress
from partly.errors import DataError, listing
from partly.labels import Labels
from partly.labels.scored import KnownScores
from partly.model_choice.missingness import EntrySums
from partly.report import operating_points, plots, reliability, summary, teacher_section
from partly.report.examples import Examples, choose_examples, evenly_spaced, image_uri, is_tiny, make_previews
from partly.report.layout import load_template
from partly.report.summary import RunView, ScoredRun

__all__ = ["Examples", "Report", "RunView", "draw_overview", "render", "view_run", "write"]

HEADLINE = {"mAP": "mAP", "CF1": "CF1", "OF1": "OF1", "P@1": "P@1", "exact_match": "exact match"}
MAX_MATRIX_ITEMS, MAX_MATRIX_LABELS = 40, 200  # drawn in the label matrix
MAX_LISTED_LABELS = 40  # columns of the matrix that have room for a name, and labels that are listed at once
EXTREME_LABELS = 10  # of more labels, the strongest and the weakest are listed first
MAX_OVERVIEW_IMAGES = 5
GROUPS = {"fair": "Sample of items", "wrong": "Most confident errors", "unknown": "Most confident new labels"}


@dataclass(frozen=True, eq=False)
class Report:
    """Contents of one file. Without examples, evaluation items are shown."""

    title: str
    labels: Labels  # observed, of the training items
    runs: tuple[RunView, ...]
    truth: Labels | None = None  # of the evaluation items; may be partly known
    examples: Examples | None = None
    note: str = ""  # on the data

    @cached_property
    def run_scores(self) -> list[ScoredRun]:
        return summary.score_runs(self.runs, self.truth)


def view_run(
    title: str,
    description: dict[str, Any],
    progress: Progress,
    reason: str = "",
    probabilities: KnownScores | None = None,
    privilege: str = "",
    thresholds: npt.NDArray[Any] | None = None,
    notes: Sequence[str] = (),
    entries: EntrySums | None = None,
) -> RunView:
    """Describe a run for the report.

    probabilities: of the evaluation items; thresholds: chosen by the run, [L]; notes: on calibration and thresholds;
    entries: sums over the evaluation items, which show how entries are missing.
    """
    past = (progress.history, progress.best_epoch, progress.seconds)
    portfolio = tuple(progress.notes.get("portfolio", ()))
    return RunView(
        title, description, *past, reason, probabilities, privilege, portfolio, thresholds, tuple(notes), entries
    )


def write(report: Report, path: Path) -> None:
    """Write the report atomically."""
    write_file(path, render(report).encode("utf-8", "replace"))


def render(report: Report) -> str:
    """Return the report as HTML."""
    _check(report)
    runs = report.run_scores
    best = summary.find_best(runs)
    filters: dict[str, Any] = {
        "duration": _format_duration,
        "flat": _flatten,
        "image": image_uri,
        "tiny": is_tiny,
    }
    return load_template("report.html", **filters).render(
        title=report.title,
        note=report.note,
        runs=runs,
        scored=[run for run in runs if run.scores is not None],
        best=best,
        summary=summary.summarize(runs, report.truth),
        headline=HEADLINE,
        highest=_find_highest(runs),
        evaluated=0 if report.truth is None else len(report.truth),
        known=_describe_labels(report.labels),
        panels=_draw_learning_curves(runs),
        calibration=_describe_calibration(report, runs),
        labels=_tabulate_labels(report.labels, runs, best),
        teachers=teacher_section.build(report.labels, runs),
        extremes=EXTREME_LABELS if report.labels.shape[1] > MAX_LISTED_LABELS else 0,
        label_names=report.labels.names,
        has_own_thresholds=any(run.own for run in runs),
        operating=operating_points.build_section(runs, best, report.truth),
        examples=_choose_examples(report, runs, best),
        plots=plots,
    )


def draw_overview(report: Report) -> bytes:
    """Return the report as one PNG: the label matrix, mAP of the runs, and a few images."""
    from partly.report import figures  # importing matplotlib takes longer than a short training

    _check(report)
    runs, known = report.run_scores, _describe_labels(report.labels)
    examples = _choose_examples(report, runs, summary.find_best(runs))
    images = []
    if examples is not None and any(preview.pixels is not None for preview in examples["previews"].values()):
        for card in examples["cards"][:MAX_OVERVIEW_IMAGES]:
            predicted = [entry.name + " ✗" * entry.wrong for entry in card.entries if entry.prediction == 1]
            images.append((examples["previews"][card.item].pixels, predicted))
    return figures.draw_overview(
        known["z"],
        known["names"],
        f"{known['known_share']:.0%} of the entries are known",
        [(run.style, run.view.title, run.mean_ap) for run in runs if run.scores is not None],
        images,
        "" if examples is None else examples["title"],
    )


def _check(report: Report) -> None:
    """Refuse parts that do not belong to the same labels, items and runs."""
    examples, names = report.examples or Examples(()), report.labels.names
    problems = [] if report.runs and all(report.labels.shape) else ["nothing to show: no run, no item or no label"]
    if report.examples is not None and len(examples.probabilities) != len(report.runs):
        problems.append(f"examples.probabilities: of {len(examples.probabilities)} runs, not of {len(report.runs)}")
    labeled = {"truth": report.truth, "examples.truth": examples.truth, "examples.given": examples.given}
    for part, labels in labeled.items():
        if labels is not None and labels.names != names:
            problems.append(f"{part}: other labels than those of training, or in another order")
    for p in (*examples.probabilities, *(run.probabilities for run in report.runs)):
        if p is not None and (p.ndim != 2 or p.shape[1] != len(names) or np.isnan(p.sum())):
            problems.append(f"probabilities of the shape {p.shape}: must be items x {len(names)}, without NaN")
    columns = (*examples.probabilities, examples.truth, examples.given, examples.items)
    sizes = sorted({len(part) for part in columns if part is not None})
    if sizes[1:]:
        problems.append(f"examples: of {' and '.join(map(str, sizes))} items")
    if problems:
        raise DataError(f"The report {report.title!r} is inconsistent" + listing(problems, len(problems)))


# ---------------------------------------------------------------- sections of the page


def _find_highest(runs: Sequence[ScoredRun]) -> dict[str, float]:
    """Highest value of each headline score, where runs without privilege differ in it."""
    peers = [run.scores for run in runs if run.scores is not None and not run.view.privilege]
    values = {key: {scores[key] for scores in peers} for key in HEADLINE}
    return {key: max(distinct) for key, distinct in values.items() if len(distinct) > 1}


def _describe_labels(labels: Labels) -> dict[str, Any]:
    """Label matrix, or a part of it at even distances, and its summary."""
    limits = zip(labels.shape, (MAX_MATRIX_ITEMS, MAX_MATRIX_LABELS), strict=True)
    items, columns = (evenly_spaced(count, limit) for count, limit in limits)
    z = labels.rows(items)[:, columns]
    names = [labels.names[j] for j in columns] if len(columns) <= MAX_LISTED_LABELS else []
    return labels.summary() | {"z": z, "names": names, "png": plots.draw_matrix(z)}


def _draw_learning_curves(runs: Sequence[ScoredRun]) -> list[dict[str, Any]]:
    """Draw the loss and each kind of validation score over the epochs; nothing where no run has two epochs."""
    if all(len(run.view.history) < 2 for run in runs):
        return []
    titles = {"loss": "training loss"}
    for key in (key for run in runs for epoch in run.view.history for key in epoch if key.startswith("validation_")):
        titles[key] = key.replace("_", " ").replace("mAP unknown as no", "mAP, unknown treated as no")
    panels = []
    for key, title in titles.items():
        curves = []
        for run in runs:
            points = {epoch["epoch"]: epoch[key] for epoch in run.view.history if epoch.get(key) is not None}
            best = None if key == "loss" else run.view.best_epoch  # chosen by validation
            if points:
                name = run.view.title if runs[1:] else ""
                curves.append(plots.Curve(run.style, list(points), list(points.values()), best, name))
        if curves:
            panels.append({"title": title, "drawing": plots.draw_curves(curves)})
    return panels


def _describe_calibration(report: Report, runs: Sequence[ScoredRun]) -> dict[str, Any] | None:
    """Reliability diagram and its description; None without evaluation items."""
    runs = [run for run in runs if run.has_trusted_scores]
    if report.truth is None or not runs:
        return None
    results = [
        reliability.measure_reliability(
            run.view.probabilities, report.truth, None if run.missing is None else run.missing.weights
        )
        for run in runs
    ]
    measured = [(run.style, result) for run, result in zip(runs, results, strict=True) if result is not None]
    texts = ["" if result is None else reliability.describe_reliability(result) for result in results]
    svg = reliability.draw_reliability(measured) if measured else None
    return {"svg": svg, "runs": list(zip(runs, texts, strict=True))}


def _tabulate_labels(labels: Labels, runs: Sequence[ScoredRun], best: ScoredRun | None) -> dict[str, Any]:
    """AP and known entries of each label, the best first; without AP, the best known first."""
    yes, no = labels.counts()
    ap = {run: run.ap for run in runs if run.ap is not None}
    order, defined = -(yes + no), len(labels.names)
    if best is not None:
        order, defined = np.nan_to_num(-ap[best], nan=np.inf), int(np.count_nonzero(~np.isnan(ap[best])))
    rows = [
        {"name": labels.names[j], "yes": int(yes[j]), "no": int(no[j]), "ap": [float(ap[run][j]) for run in ap]}
        for j in np.argsort(order, kind="stable")
    ]
    styled = [(run.style, run.view.title, values) for run, values in ap.items()]
    drawing = plots.draw_scatter(labels.names, yes, styled) if ap and len(rows) > MAX_LISTED_LABELS else None
    return {
        "rows": rows,
        "runs": list(ap),
        "drawing": drawing,
        "defined": defined,
        "most_known": max(1, int((yes + no).max())),
    }


def _choose_examples(report: Report, runs: Sequence[ScoredRun], best: ScoredRun | None) -> dict[str, Any] | None:
    """Cards with the predictions of the best run, or else of the first that has any."""
    examples = report.examples
    if examples is None:
        run = best or next((run for run in runs if run.view.probabilities is not None), None)
        if run is None:
            return None
        examples = Examples((np.asarray(run.view.probabilities),), report.truth)
    else:
        run = best or runs[0]
        examples = replace(examples, probabilities=(examples.probabilities[runs.index(run)],))
    cards = choose_examples(examples, report.labels.names, run.view.thresholds)
    previews = {}
    if examples.items is not None and cards:
        positions, labels = [card.item for card in cards], [card.label for card in cards]
        evidence = examples.evidence[runs.index(run)] if examples.evidence else None
        previews = dict(zip(positions, make_previews(examples.items, positions, labels, evidence), strict=True))
    groups = {title: [card for card in cards if card.kind == kind] for kind, title in GROUPS.items()}
    return {
        "title": run.view.title,
        "of": examples,
        "cards": cards,
        "groups": {title: group for title, group in groups.items() if group},
        "previews": previews,
        "own_thresholds": run.view.thresholds is not None,
    }


# ---------------------------------------------------------------- filters of the template


def _format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _flatten(part: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested names and values; of long lists, such as the labels, only the length."""
    for key, value in part.items():
        if isinstance(value, dict) and value:
            yield from _flatten(value, f"{prefix}{key} · ")
        elif isinstance(value, list) and len(value) > 8:
            yield f"{prefix}{key}", f"{len(value)}"
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)
