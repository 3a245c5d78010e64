"""Fit a calibration to held-out scores, apply it, and describe it.

A label with too few known entries takes the map or the threshold of all labels of its kind together (those with known
no's, or those without). Where these have too few as well, scores stay unchanged and the threshold is 0.5.
`Calibration.describe` lists such labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.special import expit, logit

from partly.calibration.maps import IDENTITY, METHODS, Map, map_from_dict, map_to_dict
from partly.calibration.samples import CalibrationSample, Floats, collect_samples, estimate_shares, pool_samples
from partly.calibration.thresholds import NEVER_YES, ROUNDING, choose_threshold, choose_threshold_for_share, parse_goal
from partly.errors import SettingError, did_you_mean, list_names
from partly.labels import scored

T = TypeVar("T")
Source = Literal["own", "pooled", "none"]
# Known yes, and as many entries to compare them with, that a label needs for a fit of its own: docs/thresholds.md.
MIN_ENTRIES = {"platt": 20, "isotonic": 100, "threshold": 20}


@dataclass(frozen=True)
class LabelCalibration:
    """Calibration of one label: its map from scores to logits, its threshold, and where both come from.

    yes, rest: numbers of entries it was fitted to; share: estimated share of yes, where no no is known; reached:
    whether any threshold reaches the goal. Where none does, the label is never predicted.
    """

    map: Map
    map_from: Source
    threshold: float
    threshold_from: Source
    yes: int
    rest: int
    share: float | None = None
    reached: bool = True


@dataclass(frozen=True)
class Calibration:
    """Calibration of all labels.

    method: how scores become probabilities, None where they stay unchanged; goal: what thresholds optimize, None where
    the model's own thresholds are kept.
    """

    method: str | None
    goal: str | None
    labels: tuple[LabelCalibration, ...]

    @property
    def thresholds(self) -> Floats:
        """Thresholds on probabilities, [L]."""
        return np.array([label.threshold for label in self.labels])

    def __call__(self, logits: Floats) -> Floats:
        """Return calibrated logits [N, L]; the same array where there is no method."""
        if self.method is None:
            return logits
        columns = [label.map(logits[:, j]) for j, label in enumerate(self.labels)]
        return np.stack(columns, axis=1) if columns else logits

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        labels = [vars(label) | {"map": map_to_dict(label.map)} for label in self.labels]
        return {"method": self.method, "goal": self.goal, "labels": labels}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Calibration:
        """Read what `to_dict` wrote."""
        labels = (LabelCalibration(**(label | {"map": map_from_dict(label["map"])})) for label in values["labels"])
        return cls(values["method"], values["goal"], tuple(labels))

    def describe(self, names: Sequence[str]) -> list[str]:
        """Return sentences on what was fitted, and on labels without a fit of their own."""
        pairs = list(zip(names, self.labels, strict=True))
        sentences = [f"Probabilities are calibrated ({self.method}) on held-out entries."] if self.method else []
        sentences += [f"Thresholds are chosen for {self.goal} on held-out entries."] if self.goal else []
        without_no = [name for name, label in pairs if label.share is not None]
        if without_no:
            sentences.append(f"No known no for {list_names(without_no)}: an estimated share of yes is used instead.")
        if self.method is not None:
            sources = [(name, label.map_from) for name, label in pairs]
            sentences += _describe_fallbacks("calibration", self.method, sources, "probabilities stay unchanged")
        if self.goal is not None:
            sources = [(name, label.threshold_from) for name, label in pairs]
            sentences += _describe_fallbacks("threshold", "threshold", sources, "the threshold is 0.5")
        missed = [name for name, label in pairs if not label.reached]
        if missed:
            sentences.append(f"No threshold reaches {self.goal} for {list_names(missed)}: never predicted as yes.")
        return sentences

    def told(self, names: Sequence[str]) -> list[str]:
        """Deprecated name of `describe`."""
        warnings.warn("Calibration.told is now Calibration.describe.", DeprecationWarning, stacklevel=2)
        return self.describe(names)


def _describe_fallbacks(what: str, kind: str, sources: Sequence[tuple[str, Source]], otherwise: str) -> list[str]:
    reason = f"fewer than {MIN_ENTRIES[kind]} known yes or no, or scores that do not rise with yes"
    sentences = []
    for fallback, consequence in (("pooled", "that of all labels together is used"), ("none", otherwise)):
        affected = [name for name, source in sources if source == fallback]
        if affected:
            sentences.append(f"No {what} of its own for {list_names(affected)} ({reason}): {consequence}.")
    return sentences


def check_options(method: Any, goal: Any) -> None:
    """Refuse an unknown calibration method or goal, before anything is trained."""
    if method is not None and method not in METHODS:
        raise SettingError(f"calibrate = {method!r}: there is no such method.{did_you_mean(str(method), METHODS)}")
    if goal is not None:
        parse_goal(goal)


def fit_calibration(
    scores: Any, labels: Any, method: str | None = None, goal: str | None = None, thresholds: Floats | None = None
) -> Calibration:
    """Fit a calibration to held-out logits [N, L] and the known entries of these items.

    method: "platt", "isotonic", or None, which leaves scores unchanged. goal: "f1", "precision:0.9", "recall:0.9",
    "share", or None, which keeps the model's own thresholds [L] (None: 0.5).
    """
    check_options(method, goal)
    scores, labels = scored.check_scores(scores, labels)
    shares = estimate_shares(scores, labels)
    samples = collect_samples(scores, labels, shares)
    maps: list[tuple[Map, Source]] = [(IDENTITY, "none")] * len(samples)
    if method is not None:
        maps = _fit_each_or_pooled(samples, METHODS[method], MIN_ENTRIES[method], IDENTITY)
    cuts = _choose_thresholds(scores, samples, maps, shares, goal, thresholds)
    fitted = (
        LabelCalibration(
            *map,
            float(expit(cut)),
            source,
            len(sample.yes),
            len(sample.rest),
            share=float(share) if sample.by_prior else None,
            reached=cut != NEVER_YES,
        )
        for sample, map, (cut, source), share in zip(samples, maps, cuts, shares, strict=True)
    )
    return Calibration(method, goal, tuple(fitted))


def _choose_thresholds(
    scores: Floats,
    samples: Sequence[CalibrationSample],
    maps: Sequence[tuple[Map, Source]],
    shares: Floats,
    goal: str | None,
    thresholds: Floats | None,
) -> list[tuple[float, Source]]:
    """Thresholds on calibrated logits, and where they come from."""
    if goal is None:  # predictions stay the same
        own_thresholds = np.zeros(len(samples)) if thresholds is None else logit(thresholds.astype(np.float64))
        mapped = [float(map(np.array(cut))) - ROUNDING for (map, _), cut in zip(maps, own_thresholds, strict=True)]
        return [(0.0 if thresholds is None else cut, "none") for cut in mapped]
    if goal == "share":
        columns = (map(scores[:, j]) for j, (map, _) in enumerate(maps))
        return [
            (choose_threshold_for_share(column, share), "own") for column, share in zip(columns, shares, strict=True)
        ]
    target = parse_goal(goal)
    calibrated = [sample.apply(map) for sample, (map, _) in zip(samples, maps, strict=True)]
    return _fit_each_or_pooled(
        calibrated, lambda sample: choose_threshold(sample, target), MIN_ENTRIES["threshold"], 0.0
    )


def _fit_each_or_pooled(
    samples: Sequence[CalibrationSample], fit: Callable[[CalibrationSample], T | None], min_entries: int, default: T
) -> list[tuple[T, Source]]:
    """Fit each label by itself, or else all labels of its kind together, or else return the default."""

    def fit_if_enough(sample: CalibrationSample) -> T | None:
        return fit(sample) if min(len(sample.yes), len(sample.rest)) >= min_entries else None

    kinds = {kind: [sample for sample in samples if sample.by_prior == kind] for kind in (False, True)}
    pooled = {kind: fit_if_enough(pool_samples(group)) for kind, group in kinds.items() if group}
    results: list[tuple[T, Source]] = []
    for sample in samples:
        own, common = fit_if_enough(sample), pooled[sample.by_prior]
        if own is not None:
            results.append((own, "own"))
        else:
            results.append((default, "none") if common is None else (common, "pooled"))
    return results
