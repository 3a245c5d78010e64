"""The HTML page of an evaluation: models, their comparison, labels, calibration, thresholds, and all entries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partly import metrics
from partly.metrics.whole_matrix import ASSUMPTIONS
from partly.report import operating_points, plots
from partly.report.evaluation import LOWER_IS_BETTER, Evaluation, ModelScores, format_p, heading_of
from partly.report.evaluation_tables import PART_METRICS, format_interval, hierarchy_tables
from partly.report.layout import load_template
from partly.report.reliability import describe_reliability, draw_reliability, measure_reliability
from partly.report.summary import RunView, ScoredRun

MAX_LABELS = 300  # on the page: those with the most known yes


def render(evaluation: Evaluation) -> str:
    """Return the page as self-contained HTML."""
    runs = [_as_run(model, place) for place, model in enumerate(evaluation.models)]
    first = evaluation.models[0]
    return load_template("evaluation.html").render(
        title=" and ".join(model.name for model in evaluation.models) if len(runs) < 4 else f"{len(runs)} models",
        known=evaluation.labels.summary(),
        confidence=100 * evaluation.confidence,
        summary=_summarize(evaluation),
        warnings=evaluation.warnings,
        part_metrics=PART_METRICS,
        runs=runs,
        headline=_headline(evaluation),
        all_metrics=[
            (name, [format_interval(m.values[name], *m.intervals[name]) for m in evaluation.models])
            for name in first.intervals
        ],
        comparisons=_comparisons(evaluation),
        parts=_parts(evaluation, runs),
        labels=_labels(evaluation),
        calibration=_calibration(evaluation, runs),
        operating=operating_points.build_section(runs, runs[0], evaluation.labels),
        hierarchy=hierarchy_tables(evaluation),
        wholes=[(run, _whole(model)) for run, model in zip(runs, evaluation.models, strict=True) if model.whole],
    )


def _as_run(model: ModelScores, place: int) -> ScoredRun:
    """Return a model in the form that the sections of a report take."""
    view = RunView(model.name, {}, [], probabilities=model.scores)
    return ScoredRun(view, plots.choose_style(place), model.values, model.measured.by_label["AP"], None, model.missing)


def _summarize(evaluation: Evaluation) -> list[str]:
    if len(evaluation.models) > 1:
        return list(evaluation.sentences())
    model = evaluation.models[0]
    name, heading = next(iter(evaluation.headline.items()))
    return [f"{heading} {format_interval(model.values[name], *model.intervals[name])} on known entries."]


def _headline(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the main metrics: a value and an interval for each model, and whether it is the best."""
    rows = []
    for name, heading in evaluation.headline.items():
        values = [model.values[name] for model in evaluation.models]
        defined = [value for value in values if value == value]
        best = (min if name in LOWER_IS_BETTER else max)(defined, default=math.nan)
        cells = [
            {"value": model.values[name], "ends": model.intervals[name], "top": len(values) > 1 and value == best}
            for model, value in zip(evaluation.models, values, strict=True)
        ]
        rows.append({"name": heading, "cells": cells, "lower": name in LOWER_IS_BETTER})
    return rows


def _comparisons(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the paired differences, with the position of each interval on a track centered at 0."""
    rows = evaluation.comparisons
    ends = [abs(row[end]) for row in rows for end in ("low", "high") if row[end] == row[end]]
    reach = max(ends, default=1.0) or 1.0

    def position(value: float) -> float:
        return 50 + 48 * value / reach

    return [
        row
        | {
            "text": format_interval(row["difference"], row["low"], row["high"]),
            "chance": format_p(row["p"]).removeprefix("= "),
            "track": None if math.isnan(row["low"]) else [position(row[key]) for key in ("low", "difference", "high")],
            "heading": heading_of(row["metric"]),
            "lower": row["metric"] in LOWER_IS_BETTER,
        }
        for row in rows
    ]


def _parts(evaluation: Evaluation, runs: list[ScoredRun]) -> dict[str, list[dict[str, Any]]]:
    """Return the metrics of each part, grouped by slicing: a row per model with its cells."""
    result: dict[str, list[dict[str, Any]]] = {}
    for position, part in enumerate(evaluation.models[0].parts):
        same = [model.parts[position] for model in evaluation.models]
        cells = [[format_interval(p.values[name], *p.intervals[name]) for name in PART_METRICS] for p in same]
        row = {
            "title": part.title,
            "entries": part.values["entries_known"],
            "models": list(zip(runs, cells, strict=True)),
        }
        result.setdefault(part.by, []).append(row)
    return result


def _labels(evaluation: Evaluation) -> dict[str, Any]:
    """Return the AP of each label with its interval for every model; the labels with the most known yes first."""
    yes, no = evaluation.labels.counts()
    order = np.argsort(-yes, kind="stable")[:MAX_LABELS]
    aps = [model.measured.by_label["AP"] for model in evaluation.models]
    ends = [_ends(model, evaluation) for model in evaluation.models]
    rows = [
        {
            "name": evaluation.labels.names[j],
            "cells": [(float(ap[j]), *map(float, end[j])) for ap, end in zip(aps, ends, strict=True)],
            "yes": int(yes[j]),
            "no": int(no[j]),
        }
        for j in order
    ]
    return {"rows": rows, "count": len(yes)}


def _ends(model: ModelScores, evaluation: Evaluation) -> Any:
    if model.missing.biased:  # errors of known entries do not hold for weighted ones
        return np.full((evaluation.labels.shape[1], 2), np.nan)
    return metrics.label_intervals(model.measured, evaluation.confidence)["AP"]


def _calibration(evaluation: Evaluation, runs: list[ScoredRun]) -> dict[str, Any] | None:
    measured = [
        (run, measure_reliability(m.scores, evaluation.labels, m.missing.weights))
        for run, m in zip(runs, evaluation.models, strict=True)
        if not m.missing.withheld
    ]
    drawn = [(run, result) for run, result in measured if result is not None]
    if not drawn:
        return None
    drawing = draw_reliability([(run.style, result) for run, result in drawn])
    return {"svg": drawing, "runs": [(run, describe_reliability(result)) for run, result in drawn]}


def _whole(model: ModelScores) -> dict[str, Any]:
    """Return the estimates for all entries as rows, with the places of interval and bounds on a track."""
    whole = model.whole
    assert whole is not None
    rows = [
        {"name": name, "estimate": estimate, "text": format_interval(estimate.value, estimate.low, estimate.high)}
        for name, estimate in whole.estimates.items()
        if not (math.isnan(estimate.value) and math.isnan(estimate.lowest))
    ]
    return {"rows": rows, "notes": whole.notes, "assumption": ASSUMPTIONS.get(whole.mechanism, "")}
