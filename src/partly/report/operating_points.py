"""Precision and recall over the threshold, from counts that are small enough to embed in a page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import Labels, scored
from partly.metrics import precision_recall_f1
from partly.model_choice.missingness import Missingness
from partly.report import plots
from partly.report.chart import Chart, Drawing, linear_axis
from partly.report.summary import ScoredRun, has_only_yes

FINE_STEPS, COARSE_STEPS = 100, 20  # thresholds between 0 and 1; fewer where there are many labels
MAX_LABELS_WITH_FINE_STEPS = 200  # of all runs together
MAX_LABELS_LISTED = 1000  # with more labels, the page contains only their sum
TENTHS = range(1, 10)
MICRO = {"OP": "precision", "OR": "recall", "OF1": "F1"}  # all known entries together
MACRO = {"CP": "mean precision", "CR": "mean recall", "CF1": "CF1"}  # over the labels
STYLES = {"OR": plots.choose_style(3), "OP": replace(plots.choose_style(4), dashed=True)}  # lines of the chart
Counts = npt.NDArray[np.number[Any]]


@dataclass(frozen=True, eq=False)
class ThresholdCounts:
    """Known entries by label and by the number of thresholds k / steps, k = 1 ..., that they reach: [L, steps + 1].

    Where entries are not missing at random, entries are weighted. one_sided: labels without a defined precision, [L].
    """

    yes: Counts
    no: Counts
    one_sided: npt.NDArray[np.bool_]

    def count_above(self, step: int) -> tuple[Counts, Counts, Counts]:
        """Count hits, predicted yes and all yes at the threshold step / steps, [L] each."""
        hits = self.yes[:, step:].sum(axis=1)
        return hits, hits + self.no[:, step:].sum(axis=1), self.yes.sum(axis=1)

    def scores(self, step: int) -> dict[str, float]:
        """Compute the scores of `metrics.evaluate` at this threshold."""
        counts = self.count_above(step)
        precision, recall, _ = precision_recall_f1(*counts)
        cp, cr = scored.mean(np.where(self.one_sided, np.nan, precision)), scored.mean(recall)
        micro = map(float, precision_recall_f1(*(part.sum() for part in counts)))
        cf1 = 2 * cp * cr / (cp + cr) if cp + cr else 0.0
        return dict(zip(MICRO, micro, strict=True)) | dict(zip(MACRO, (cp, cr, cf1), strict=True))

    def to_lists(self) -> list[list[float]]:
        """Return a list for each label, or their sum where there are too many: thresholds reached, yes, no, ..."""
        listed = len(self.yes) <= MAX_LABELS_LISTED
        yes, no = (part if listed else part.sum(axis=0, keepdims=True) for part in (self.yes, self.no))
        return [
            [
                n if isinstance(n, int) else round(n, 2)
                for step in np.flatnonzero(a + b)
                for n in (int(step), a[step].item(), b[step].item())
            ]
            for a, b in zip(yes, no, strict=True)
        ]


def count_by_threshold(
    probabilities: scored.KnownScores, truth: Labels, steps: int = FINE_STEPS, missing: Missingness | None = None
) -> ThresholdCounts:
    """Count the known entries of evaluation items. probabilities: [N, L]; missing: why the others are unknown."""
    dtype = np.result_type(probabilities.dtype, np.float16)  # compare as `metrics` does: 0.7 is 0.7 in float32 too
    edges = (np.arange(1, steps + 1) / steps).astype(dtype)
    counts = np.zeros((2, len(truth.names), steps + 1), np.int64)
    for j, pair in enumerate(scored.iter_yes_no(probabilities, truth.ternary())):
        for kind, values in enumerate(pair):
            counts[kind, j] = np.bincount(np.searchsorted(edges, values, side="right"), minlength=steps + 1)
    yes, no = truth.counts()
    one_sided = (no == 0) & (yes < len(truth))
    if missing is None or missing.weights is None:
        return ThresholdCounts(counts[0], counts[1], one_sided)
    yes_weight, no_weight = missing.weights
    return ThresholdCounts(counts[0] * yes_weight[:, None], counts[1] * no_weight[:, None], one_sided)


def build_section(runs: Sequence[ScoredRun], best: ScoredRun | None, truth: Labels | None) -> dict[str, Any] | None:
    """Return the contents of the section on thresholds; None where precision or recall is undefined."""
    runs = [run for run in runs if run.has_trusted_scores]
    if truth is None or not runs or not truth.counts()[0].any() or has_only_yes(truth):
        return None
    steps = FINE_STEPS if len(runs) * len(truth.names) <= MAX_LABELS_WITH_FINE_STEPS else COARSE_STEPS
    counts = [count_by_threshold(run.view.probabilities, truth, steps, run.missing) for run in runs]
    position = runs.index(best) if best is not None else 0
    own, half = counts[position], steps // 2
    listed = len(truth.names) <= MAX_LABELS_LISTED
    hits, predicted, yes = own.count_above(half)
    precision, recall, f1 = precision_recall_f1(hits, predicted, yes)
    precision, f1 = (np.where(own.one_sided, np.nan, values) for values in (precision, f1))
    rows = zip(truth.names, precision, recall, f1, predicted, yes, own.no.sum(axis=1), strict=True)
    without_precision = np.flatnonzero(own.one_sided).tolist() if listed else []
    lists = [run_counts.to_lists() for run_counts in counts]
    return {
        "run": runs[position],
        "runs": list(zip(runs, (run_counts.scores(half) for run_counts in counts), strict=True)),
        "columns": MICRO | (MACRO if listed else {}),
        "tenths": [(k / 10, own.scores(k * steps // 10)) for k in TENTHS],
        "labels": list(rows) if listed else [],
        "own": runs[position].view.thresholds,
        "weighted": any(run.missing is not None and run.missing.weights is not None for run in runs),
        "drawing": _draw_precision_recall(own, steps),
        "legend": [(style, MICRO[key]) for key, style in STYLES.items()],
        "data": {"steps": steps, "first": position, "counts": lists, "blind": without_precision},
    }


def _draw_precision_recall(counts: ThresholdCounts, steps: int) -> Drawing:
    """Precision and recall of all known entries over the threshold."""
    scores = [counts.scores(step) for step in range(steps + 1)]
    x = [step / steps for step in range(steps + 1)]
    chart = Chart(389, 194, linear_axis(0, 1, "threshold"), linear_axis(-0.03, 1.03))
    tooltips = []
    for key, style in STYLES.items():
        y = [values[key] for values in scores]
        if key == "OP":  # undefined where nothing is predicted
            y = [value if counts.count_above(step)[1].any() else math.nan for step, value in enumerate(y)]
        chart.add_line(x, y, style.color, plots.DASHES if style.dashed else "none")
        chart.add_marks(x[:: steps // 10], y[:: steps // 10], style.marker, f'fill="{style.color}"', 4.5)
        tooltips += [(a, b, f"threshold {a:.2f}: {MICRO[key]} {b:.3f}") for a, b in zip(x, y, strict=True) if b == b]
    return chart.to_drawing(tooltips)
