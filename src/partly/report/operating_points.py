"""Precision and recall over the threshold, from counts that are small enough to go with a page."""

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
from partly.report.chart import Chart, Drawing, even
from partly.report.words import Scored, only_yes

STEPS, COARSE = 100, 20  # thresholds between 0 and 1; fewer where there are many labels
MANY = 200  # labels of all runs together
LISTED = 1000  # of more labels only what they come to all together is in the page
TENTHS = range(1, 10)
SUMMED = {"OP": "precision", "OR": "recall", "OF1": "F1"}  # all known entries together
MEANS = {"CP": "mean precision", "CR": "mean recall", "CF1": "CF1"}  # over the labels
LOOKS = {"OR": plots.look(3, False), "OP": replace(plots.look(4, False), dashed=True)}  # lines of the picture
Counts = npt.NDArray[np.number[Any]]


@dataclass(frozen=True, eq=False)
class Called:
    """Known entries by label and by how many of the thresholds k / steps, k = 1 ..., they reach: [L, steps + 1].

    Where entries are not missing at random, the entries that they stand for. one_sided [L]: labels without precision.
    """

    yes: Counts
    no: Counts
    one_sided: npt.NDArray[np.bool_]

    def above(self, step: int) -> tuple[Counts, Counts, Counts]:
        """Of each label, at the threshold step / steps: hits, entries called yes, and all yes. [L] each."""
        hits = self.yes[:, step:].sum(axis=1)
        return hits, hits + self.no[:, step:].sum(axis=1), self.yes.sum(axis=1)

    def scores(self, step: int) -> dict[str, float]:
        """As `metrics.evaluate` has them at this threshold."""
        table = self.above(step)
        precision, recall, _ = precision_recall_f1(*table)
        cp, cr = scored.mean(np.where(self.one_sided, np.nan, precision)), scored.mean(recall)
        pooled = map(float, precision_recall_f1(*(part.sum() for part in table)))
        cf1 = 2 * cp * cr / (cp + cr) if cp + cr else 0.0
        return dict(zip(SUMMED, pooled, strict=True)) | dict(zip(MEANS, (cp, cr, cf1), strict=True))

    def packed(self) -> list[list[float]]:
        """A list a label, or one for all where there are too many: thresholds reached, yes, no; and so on."""
        yes, no = (part if len(part) <= LISTED else part.sum(axis=0, keepdims=True) for part in (self.yes, self.no))
        return [
            [
                n if isinstance(n, int) else round(n, 2)
                for step in np.flatnonzero(a + b)
                for n in (int(step), a[step].item(), b[step].item())
            ]
            for a, b in zip(yes, no, strict=True)
        ]


def count(
    probabilities: scored.KnownScores, truth: Labels, steps: int = STEPS, missing: Missingness | None = None
) -> Called:
    """The known entries of some evaluation items. probabilities: [N, L]; missing: how others are."""
    exact = np.result_type(probabilities.dtype, np.float16)  # 0.7 is 0.7, also in float32: as `metrics` compares
    edges = (np.arange(1, steps + 1) / steps).astype(exact)
    found = np.zeros((2, len(truth.names), steps + 1), np.int64)
    for j, both in enumerate(scored.iter_yes_no(probabilities, truth.ternary())):
        for kind, some in enumerate(both):
            found[kind, j] = np.bincount(np.searchsorted(edges, some, side="right"), minlength=steps + 1)
    yes, no = truth.counts()
    one_sided = (no == 0) & (yes < len(truth))
    if missing is None or missing.weights is None:
        return Called(found[0], found[1], one_sided)
    of_yes, of_no = missing.weights
    return Called(found[0] * of_yes[:, None], found[1] * of_no[:, None], one_sided)


def section(runs: Sequence[Scored], best: Scored | None, truth: Labels | None) -> dict[str, Any] | None:
    """What the page says about thresholds; None where no known yes tells anything."""
    able = [run for run in runs if run.scores is not None and not (run.missing is not None and run.missing.withheld)]
    if truth is None or not able or not truth.counts()[0].any() or only_yes(truth):
        return None
    steps = STEPS if len(able) * len(truth.names) <= MANY else COARSE
    counted = [count(run.view.probabilities, truth, steps, run.missing) for run in able]
    at = able.index(best) if best is not None else 0
    called, half = counted[at], steps // 2
    listed = len(truth.names) <= LISTED
    hits, predicted, yes = called.above(half)
    precision, recall, f1 = precision_recall_f1(hits, predicted, yes)
    precision, f1 = (np.where(called.one_sided, np.nan, values) for values in (precision, f1))
    rows = zip(truth.names, precision, recall, f1, predicted, yes, called.no.sum(axis=1), strict=True)
    return {
        "run": able[at],
        "runs": list(zip(able, (one.scores(half) for one in counted), strict=True)),
        "columns": SUMMED | (MEANS if listed else {}),
        "tenths": [(k / 10, called.scores(k * steps // 10)) for k in TENTHS],
        "labels": list(rows) if listed else [],
        "own": able[at].view.thresholds,
        "weighted": any(run.missing is not None and run.missing.weights is not None for run in able),
        "drawing": _draw(called, steps),
        "lines": [(look, SUMMED[key]) for key, look in LOOKS.items()],
        "data": {"steps": steps, "first": at, "counts": [one.packed() for one in counted], "blind": _blind(called)},
    }


def _blind(called: Called) -> list[int]:
    """Positions of the labels without a precision."""
    return np.flatnonzero(called.one_sided).tolist() if len(called.one_sided) <= LISTED else []


def _draw(called: Called, steps: int) -> Drawing:
    """Precision and recall of all known entries over the threshold."""
    found = [called.scores(step) for step in range(steps + 1)]
    some = [bool(called.above(step)[1].any()) for step in range(steps + 1)]  # precision of nothing is not worth a line
    x = [step / steps for step in range(steps + 1)]
    chart = Chart(389, 194, even(0, 1, "threshold"), even(-0.03, 1.03))
    said = []
    for key, look in LOOKS.items():
        y = [one[key] if key == "OR" or called_any else math.nan for one, called_any in zip(found, some, strict=True)]
        chart.line(x, y, look.colour, plots.DASHES if look.dashed else "none")
        chart.marks(x[:: steps // 10], y[:: steps // 10], look.marker, f'fill="{look.colour}"', 4.5)
        said += [(a, b, f"threshold {a:.2f}: {SUMMED[key]} {b:.3f}") for a, b in zip(x, y, strict=True) if b == b]
    return chart.drawing(said)
