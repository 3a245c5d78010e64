"""Model and teachers as one: fit the stacked regression on out-of-fold logits, and apply it to other items.

The regression is fitted to known entries; where only yes is known, to all entries, with unknown taken for no.
Out-of-fold logits of the combination are cross-fitted: slopes for an item come from the other folds of items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partly.labels import Labels
from partly.labels.weights import Weights
from partly.solvers.calibration import reweight_by_missingness
from partly.solvers.thresholds import best_thresholds
from partly.teachers import stacking
from partly.teachers.stacking import Entries, Slopes
from partly.teachers.standardization import Standardization, measure

Floats = npt.NDArray[np.float32]
ITEMS_AT_A_TIME = 4096
FOLDS = 5
EXPECTED_YES = 2.0  # labels of an item, where nothing is known


@dataclass(frozen=True)
class Combination:
    """Slopes and biases for model and teachers, with the standardization of each teacher's scores."""

    slopes: Floats  # [1 + 2 K, L]
    bias: Floats  # [L]
    center: Floats  # [L], mean of the model's out-of-fold logits
    pooled: Floats  # [1 + 2 K]
    precision: float  # of the prior of a label's slopes around the pooled ones
    used: tuple[int, ...]  # teachers that count
    standardizations: tuple[Standardization, ...]
    thresholds: Floats | None  # [L]; None: those of the model
    names: tuple[str, ...] = ()  # of the teachers

    def __call__(self, logits: Floats, scores: Sequence[Floats]) -> Floats:
        """Return combined logits [B, L] of the model's logits and each teacher's scores."""
        if not self.used:
            return logits
        return self._weigh(inputs_of(logits - self.center, scores, self.standardizations))

    def teachers_only(self, scores: Sequence[Floats]) -> Floats:
        """Return logits [B, L] of the teachers alone, with the slopes that they have beside the model."""
        model = np.zeros_like(scores[0])
        return self._weigh(inputs_of(model, scores, self.standardizations))

    def _weigh(self, inputs: Sequence[Floats]) -> Floats:
        total = np.broadcast_to(self.bias, inputs[0].shape).astype(np.float32)
        for slope, part in zip(self.slopes, inputs, strict=True):
            total += slope * part
        return total

    def to_json(self) -> dict[str, Any]:
        """Return everything for JSON; `from_json` reads it."""
        arrays = {name: _plain(getattr(self, name)) for name in ("slopes", "bias", "center", "pooled")}
        return {
            **arrays,
            "precision": None if math.isinf(self.precision) else self.precision,
            "used": list(self.used),
            "standardizations": [
                {"mean": _plain(part.mean), "scale": [None if math.isinf(s) else s for s in part.scale.tolist()]}
                for part in self.standardizations
            ],
            "thresholds": None if self.thresholds is None else _plain(self.thresholds),
            "names": list(self.names),
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Combination:
        """Read what `to_json` gave; refuses shapes that do not fit together by a ValueError."""
        slopes, bias, center, pooled = (
            np.asarray(said[name], np.float32) for name in ("slopes", "bias", "center", "pooled")
        )
        parts = tuple(
            Standardization(
                np.asarray(part["mean"], np.float64),
                np.array([math.inf if s is None else float(s) for s in part["scale"]]),
            )
            for part in said["standardizations"]
        )
        labels = len(bias)
        fits = slopes.shape == (1 + 2 * len(parts), labels) and center.shape == (labels,)
        if not fits or any(part.mean.shape != (labels,) or part.scale.shape != (labels,) for part in parts):
            raise ValueError("arrays of different sizes")
        precision = math.inf if said["precision"] is None else float(said["precision"])
        thresholds = None if said["thresholds"] is None else np.asarray(said["thresholds"], np.float32)
        used = tuple(int(k) for k in said["used"])
        names = tuple(map(str, said["names"]))
        return cls(slopes, bias, center, pooled, precision, used, parts, thresholds, names)

    def weights(self) -> dict[str, Any]:
        """Return what the model and each teacher are worth: pooled and per label, in logits per standard deviation."""
        return {
            "names": list(self.names),
            "used": [self.names[k] if k < len(self.names) else str(k) for k in self.used],
            "pooled": {"model": float(self.pooled[0]), "teachers": [float(x) for x in self._sums(self.pooled)]},
            "per_label": {"model": self.slopes[0].copy(), "teachers": self._sums(self.slopes)},
            "precision": self.precision,
        }

    def _sums(self, slopes: Floats) -> Floats:
        """Slopes of both inputs of each teacher together, [K, ...]."""
        return slopes[1::2] + slopes[2::2]


class Fit(NamedTuple):
    """A combination, and its out-of-fold logits of the training entries, [N, L]."""

    combination: Combination
    out_of_fold: Floats


def fit(
    out_of_fold: npt.NDArray[Any],
    scores: Sequence[npt.NDArray[Any]],
    labels: Labels,
    weights: Weights | None = None,
    seed: int = 0,
    names: Sequence[str] = (),
) -> Fit:
    """Fit how much the model's out-of-fold logits [N, L] and each teacher's scores [N, L] count."""
    items, count = labels.shape
    parts = tuple(measure(block for block in _blocks(part)) for part in scores)
    center = sum((block.sum(axis=0, dtype=np.float64) for block in _blocks(out_of_fold)), np.zeros(count)) / max(
        1, items
    )
    only_yes = not labels.counts()[1].any()
    entries = collect(out_of_fold, center, scores, parts, labels, weights, only_yes, seed)
    slopes = stacking.fit(entries, count, len(scores), seed)
    nothing_known = not labels.counts()[0].any() and only_yes
    if nothing_known:
        slopes.slopes[0] = 0.0  # the model has learned nothing
        slopes = replace(slopes, bias=np.zeros(count))
    made = Combination(
        slopes.slopes.astype(np.float32),
        slopes.bias.astype(np.float32),
        center.astype(np.float32),
        slopes.pooled.astype(np.float32),
        slopes.precision,
        slopes.teachers,
        parts,
        None,
        tuple(names),
    )
    if not slopes.teachers:
        return Fit(made, np.asarray(out_of_fold, np.float32))
    logits = _cross_fitted(made, out_of_fold, scores, entries, slopes, seed)
    if nothing_known:  # as many are called yes as items usually have labels
        share = min(0.5, EXPECTED_YES / count)
        shift = np.float32(-np.quantile(logits, 1 - share))
        made = replace(made, bias=made.bias + shift, thresholds=np.full(count, 0.5, np.float32))
        return Fit(made, logits + shift)
    return _with_thresholds(made, logits, labels, weights, only_yes)


def collect(
    logits: npt.NDArray[Any],
    center: npt.NDArray[Any],
    scores: Sequence[npt.NDArray[Any]],
    parts: Sequence[Standardization],
    labels: Labels,
    weights: Weights | None,
    only_yes: bool,
    seed: int = 0,
) -> Entries:
    """Collect known entries with their inputs; all entries of some items where only yes is known."""
    items, count = labels.shape
    if only_yes:
        chosen = np.random.default_rng(seed).permutation(items)[: max(1, stacking.MAX_ENTRIES // max(1, count))]
        chosen = np.sort(chosen) if labels.counts()[0].any() else chosen[:0]
        row, column = (part.ravel() for part in np.meshgrid(chosen, np.arange(count), indexing="ij"))
        value = labels.rows(chosen).ravel()
    else:
        row, column, value = labels.entries()
    order = np.argsort(row, kind="stable")
    row, column, value = row[order], column[order], np.asarray(value)[order]
    inputs = np.empty((len(row), 1 + 2 * len(scores)))
    for start in range(0, items, ITEMS_AT_A_TIME):
        first, last = np.searchsorted(row, [start, start + ITEMS_AT_A_TIME])
        here = slice(start, start + ITEMS_AT_A_TIME)
        if last > first:
            made = inputs_of(logits[here] - center, [np.asarray(part[here]) for part in scores], parts)
            at = row[first:last] - start, column[first:last]
            inputs[first:last] = np.stack([block[at] for block in made], axis=1)
    weight = np.ones(len(row))
    if weights is not None:
        weight = np.asarray(weights[row, column if weights.shape[1] > 1 else 0], np.float64)
    by_label = np.argsort(column, kind="stable")
    by_label = by_label[weight[by_label] > 0]
    target = (value > 0).astype(np.float64)
    return Entries(column[by_label], row[by_label], inputs[by_label], target[by_label], weight[by_label])


def inputs_of(logits: Floats, scores: Sequence[Floats], parts: Sequence[Standardization]) -> list[Floats]:
    """Return the inputs of the regression, [B, L] each: logits, then each teacher's scores per label and per item."""
    inputs = [np.asarray(logits, np.float32)]
    for part, own in zip(parts, scores, strict=True):
        inputs += [part.per_label(own), part.per_item(own)]
    return inputs


def _cross_fitted(
    made: Combination,
    out_of_fold: npt.NDArray[Any],
    scores: Sequence[npt.NDArray[Any]],
    entries: Entries,
    slopes: Slopes,
    seed: int,
) -> Floats:
    """Combined logits of the training entries, each item's by slopes that were fitted without it."""
    items, count = out_of_fold.shape
    fold = np.random.default_rng(seed).permutation(items) % FOLDS
    logits = np.empty((items, count), np.float32)
    for k in range(FOLDS):
        fitted = stacking.refit(entries[fold[entries.item] != k], count, slopes) if len(entries) else slopes
        part = replace(made, slopes=fitted.slopes.astype(np.float32), bias=fitted.bias.astype(np.float32))
        rows = np.flatnonzero(fold == k)
        for start in range(0, len(rows), ITEMS_AT_A_TIME):
            some = rows[start : start + ITEMS_AT_A_TIME]
            logits[some] = part(np.asarray(out_of_fold[some], np.float32), [np.asarray(own[some]) for own in scores])
    return logits


def _with_thresholds(made: Combination, logits: Floats, labels: Labels, weights: Weights | None, only_yes: bool) -> Fit:
    """Calibrate biases for all entries, where yes and no are known at different rates, and choose thresholds."""
    z = labels.ternary().T
    targets = (z > 0).astype(np.float32)
    known = np.ones_like(targets) if only_yes else (z != 0).astype(np.float32)
    if weights is not None:
        known = known * np.asarray(weights, np.float32).T
    shift = np.zeros(len(targets))
    if not only_yes:
        population = reweight_by_missingness(logits.T, known, targets)
        if population is not known:
            entries = stacking.entries_of([logits.T], population, targets)
            shift = stacking.fit_shift(entries, len(targets))
            known = population
    logits = logits + shift.astype(np.float32)
    p = (1 / (1 + np.exp(-np.clip(logits.T, -60, 60)))).astype(np.float32)
    gain = _gain(logits.T, known, targets)
    called = best_thresholds(p, targets, only_yes, gain)
    if only_yes:  # a probability of being known to be yes becomes one of being called yes
        lift = -np.log(called / (1 - called))
        shift, logits, called = shift + lift, logits + lift, np.full_like(called, 0.5)
    return Fit(replace(made, bias=(made.bias + shift).astype(np.float32), thresholds=called), logits.astype(np.float32))


def _gain(logits: Floats, weights: Floats, targets: Floats) -> float:
    """Share of the log loss of each label's frequency that the logits [L, N] take away."""
    total = weights.sum(axis=1, dtype=np.float64)
    rate = ((weights * targets).sum(axis=1, dtype=np.float64) + 1e-6) / (total + 2e-6)
    prior = float((total * -(rate * np.log(rate) + (1 - rate) * np.log1p(-rate))).sum())
    loss = float((weights * stacking.log_loss(logits, targets)).sum(dtype=np.float64))
    return 1 - loss / max(prior, 1e-12)


def _blocks(array: npt.NDArray[Any]) -> Any:
    make: Callable[[int], Floats] = lambda start: np.asarray(array[start : start + ITEMS_AT_A_TIME], np.float32)  # noqa: E731
    return map(make, range(0, len(array), ITEMS_AT_A_TIME))


def _plain(array: npt.NDArray[Any]) -> list[Any]:
    values: list[Any] = array.tolist()
    return values
