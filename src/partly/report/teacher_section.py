"""The report's section on teachers: their weights, pooled and per label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partly.labels import Labels
from partly.report import plots
from partly.report.summary import ScoredRun

MAX_ROWS = 40


def build(labels: Labels, runs: Sequence[ScoredRun]) -> list[dict[str, Any]]:
    """Return the contents of the section for each run with a teacher."""
    return [_describe(labels, run) for run in runs if run.view.teacher is not None]


def _describe(labels: Labels, run: ScoredRun) -> dict[str, Any]:
    weights = run.view.teacher
    assert weights is not None
    pooled, per_label, yes = weights["pooled"], weights["per_label"], labels.counts()[0]
    used = [(name, weight) for name, weight in zip(weights["names"], pooled["teachers"], strict=True) if weight]
    if not weights["used"]:
        return {"run": run, "used": []}
    teacher = np.asarray(per_label["teachers"]).sum(axis=0)
    order = np.argsort(-teacher, kind="stable")
    largest = max(float(teacher.max()), 1e-9)
    rows = [
        {
            "name": labels.names[j],
            "teacher": float(teacher[j]),
            "model": float(per_label["model"][j]),
            "yes": int(yes[j]),
            "share": 100 * max(0.0, float(teacher[j])) / largest,
        }
        for j in order[:MAX_ROWS]
    ]
    drawing = plots.draw_teacher_weights(labels.names, yes, teacher, run.style)
    agreement = _list_agreement(weights)
    left = max(0, len(order) - MAX_ROWS)
    summary = {"run": run, "used": used, "model": pooled["model"], "agreement": agreement}
    return {**summary, "rows": rows, "left": left, "drawing": drawing}


def _list_agreement(weights: dict[str, Any]) -> list[tuple[str, str, float]]:
    """Return the correlations of the teachers' scores, pair by pair."""
    agreement, names = weights["agreement"], weights["names"]
    if agreement is None:
        return []
    return [(names[a], names[b], float(agreement[a, b])) for a in range(len(names)) for b in range(a)]
