"""Scores of one or several models on the same labels: metrics, parts, estimates for all entries, and comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from partly import metrics
from partly.errors import SettingError, did_you_mean
from partly.labels import Labels
from partly.labels.scored import KnownScores
from partly.metrics import Measurement, Slice, Threshold, WholeMatrix
from partly.metrics.evaluation import COUNTS
from partly.model_choice.missingness import Missingness

HEADLINE = {
    "mAP": "mAP",
    "AUROC": "AUROC",
    "CF1": "CF1",
    "OF1": "OF1",
    "macro_f1": "macro F1",
    "P@1": "P@1",
    "brier": "Brier",
    "ECE": "ECE",
}  # metric -> heading
COMPARED = ("mAP", "AUROC", "OF1", "macro_f1", "P@1", "brier")
LOWER_IS_BETTER = (
    "log_loss",
    "macro_log_loss",
    "brier",
    "macro_brier",
    "ECE",
    "macro_ECE",
    "ranking_loss",
    "coverage_error",
    "one_error",
)
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Part:
    """Metrics of some labels or items of one model."""

    by: str
    title: str
    values: dict[str, float]
    intervals: dict[str, Interval]


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores of one model, with metrics, intervals and estimates."""

    name: str
    scores: KnownScores
    measured: Measurement
    intervals: dict[str, Interval]
    missing: Missingness
    parts: list[Part] = field(default_factory=list)
    whole: WholeMatrix | None = None
    hierarchical: dict[str, Any] = field(default_factory=dict)  # with the labels that a hierarchy implies

    @property
    def values(self) -> dict[str, float]:
        return self.measured.values


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Models that were scored on the same labels."""

    labels: Labels
    threshold: Threshold
    confidence: float
    models: list[ModelScores]
    warnings: list[str]
    chosen: tuple[str, ...] = ()  # metrics of the tables and comparisons, instead of the main ones

    @property
    def headline(self) -> dict[str, str]:
        """Return the metrics of the main table with their headings."""
        return {name: heading_of(name) for name in self.chosen} or HEADLINE

    @cached_property
    def comparisons(self) -> list[dict[str, Any]]:
        """Return the paired differences of all pairs of models, with Holm-adjusted p-values."""
        measured = {model.name: model.measured for model in self.models}
        return metrics.compare(measured, self.chosen or COMPARED, self.confidence) if len(measured) > 1 else []

    def sentences(self) -> Iterator[str]:
        """Yield a verdict on the first metric for each pair of models."""
        tests = len(self.comparisons)
        for row in self.comparisons:
            if row["metric"] == next(iter(self.headline)):
                yield _verdict(row, tests)

    def remarks(self) -> list[str]:
        """Return the verdicts, the notes on estimates and the warnings, each once."""
        several = len(self.models) > 1
        notes = [
            f"{model.name}: {note}" if several else note
            for model in self.models
            for note in (model.whole.notes if model.whole is not None else ())
        ]
        return list(dict.fromkeys([*self.sentences(), *notes, *self.warnings]))


def check_metrics(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of metrics, of which some may be those of scikit-learn; refuse unknown ones."""
    known = [name for name in metrics.measure([[0.5]], [[1.0]]).values if name not in COUNTS]
    chosen = tuple(dict.fromkeys(metrics.SKLEARN_NAMES.get(name, name) for name in names))
    for name in chosen:
        if name not in known:
            raise SettingError(f"There is no metric {name!r}.{did_you_mean(name, known)}")
    return chosen


def heading_of(name: str) -> str:
    """Return the heading of a metric in tables."""
    return HEADLINE.get(name, name.replace("_", " "))


def _verdict(row: dict[str, Any], tests: int) -> str:
    name, lower_is_better = heading_of(row["metric"]), row["metric"] in LOWER_IS_BETTER
    if row["difference"] == 0:
        return f"{row['a']} and {row['b']} have the same {name}."
    if math.isnan(row["p"]):
        return f"{row['a']} and {row['b']} cannot be compared by {name}: a paired interval is undefined."
    first, second = (row["a"], row["b"]) if (row["difference"] > 0) != lower_is_better else (row["b"], row["a"])
    ends = sorted(abs(row[end]) if row["low"] * row["high"] > 0 else row[end] for end in ("low", "high"))
    direction = "lower" if lower_is_better else "higher"
    gap = f"{name} {abs(row['difference']):.3f} {direction} [{ends[0]:.3f}, {ends[1]:.3f}]"
    chance = f"p {format_p(row['p'])}, Holm-adjusted for {tests} test{'s' * (tests > 1)}"
    if row["p"] < 0.05:
        return f"{first} is better than {second}: {gap}, {chance}."
    gap = f"{name} difference {row['difference']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['a']} and {row['b']} do not differ significantly: {gap}, {chance}."


def format_p(p: float) -> str:
    """Return a p-value with its relation sign."""
    return "undefined" if math.isnan(p) else "< 0.0001" if p < 1e-4 else f"= {p:.2g}"


def score_model(
    name: str,
    scores: KnownScores,
    labels: Labels,
    threshold: Threshold,
    missing: Missingness,
    confidence: float,
    slices: Sequence[tuple[str, Slice]] = (),
    whole: WholeMatrix | None = None,
    hierarchical: dict[str, Any] | None = None,
) -> ModelScores:
    """Measure a model on all labels and on parts of them, with intervals."""
    measured = metrics.measure(scores, labels, threshold, missing, influence=True)
    part_scores = []
    for by, part in slices:
        of_part = metrics.measure_slice(part, scores, labels, threshold, missing)
        part_scores.append(Part(by, part.title, of_part.values, metrics.intervals(of_part, confidence)))
    intervals = metrics.intervals(measured, confidence)
    return ModelScores(name, scores, measured, intervals, missing, part_scores, whole, hierarchical or {})
