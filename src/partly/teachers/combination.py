"""Combine model and teachers: fit the stacked regression on out-of-fold logits, and apply it to other items.

The regression is fitted to known entries; where only yes is known, to all entries, with unknown taken for no.
Out-of-fold logits of the combination are cross-fitted: slopes for an item come from the other folds of items.

A model of few entries may be certain of everything, although hardly any entry tests it. After k correct predictions,
the rule of succession gives the next one the odds k + 1. So before the regression, the model's logits of a label are
scaled down until their root mean square is at most log(n + 1), with n the smaller of the numbers of its known yes and
known no. The regression can raise their slopes again where known entries demand it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partly.labels import Labels
from partly.labels.weights import Weights
from partly.solvers.calibration import reweight_by_missingness
from partly.solvers.thresholds import best_thresholds
from partly.teachers import stacking
from partly.teachers.contract import items_per_block
from partly.teachers.large_arrays import allocate
from partly.teachers.score_matrix import ScoreMatrix
from partly.teachers.stacking import Entries, Slopes
from partly.teachers.standardization import Standardization, measure

Floats = npt.NDArray[np.float32]
FOLDS = 5
MAX_THRESHOLD_ENTRIES = 1 << 25  # above it, thresholds are chosen on random items
EXPECTED_YES = 2.0  # yes per item, if no label is known


@dataclass(frozen=True)
class Combination:
    """Slopes and biases for model and teachers, with the standardization of each teacher's scores."""

    slopes: Floats  # [1 + 2 K, L]
    bias: Floats  # [L]
    center: Floats  # [L], mean of the model's out-of-fold logits
    pooled: Floats  # [1 + 2 K]
    precision: float  # of the prior of each label's slopes, around the pooled ones
    used: tuple[int, ...]  # teachers with a weight
    standardizations: tuple[Standardization, ...]
    thresholds: Floats | None  # [L]; None: the thresholds of the model
    names: tuple[str, ...] = ()  # of the teachers
    agreement: Floats | None = None  # [K, K], correlations of the teachers' scores

    def __call__(self, logits: Floats, scores: Sequence[Floats]) -> Floats:
        """Return combined logits [B, L] of the model's logits and each teacher's scores."""
        if not self.used:
            return logits
        return self._weigh(inputs_of(logits - self.center, scores, self.standardizations))

    def teachers_only(self, scores: Sequence[Floats]) -> Floats:
        """Return logits [B, L] of the teachers alone, with their slopes of the combination."""
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
            "agreement": None if self.agreement is None else _plain(self.agreement),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Combination:
        """Read the content that `to_json` wrote. Raise ValueError if shapes do not fit."""
        slopes, bias, center, pooled = (
            np.asarray(content[name], np.float32) for name in ("slopes", "bias", "center", "pooled")
        )
        standardizations = tuple(
            Standardization(
                np.asarray(part["mean"], np.float64),
                np.array([math.inf if s is None else float(s) for s in part["scale"]]),
            )
            for part in content["standardizations"]
        )
        labels = len(bias)
        fits = slopes.shape == (1 + 2 * len(standardizations), labels) and center.shape == (labels,)
        if not fits or any(part.mean.shape != (labels,) or part.scale.shape != (labels,) for part in standardizations):
            raise ValueError("arrays of different sizes")
        precision = math.inf if content["precision"] is None else float(content["precision"])
        thresholds = None if content["thresholds"] is None else np.asarray(content["thresholds"], np.float32)
        used = tuple(int(k) for k in content["used"])
        names = tuple(map(str, content["names"]))
        agreement = None if content.get("agreement") is None else np.asarray(content["agreement"], np.float32)
        return cls(slopes, bias, center, pooled, precision, used, standardizations, thresholds, names, agreement)

    def weights(self) -> dict[str, Any]:
        """Return the weights of model and teachers, pooled and per label, in logits per standard deviation."""
        return {
            "names": list(self.names),
            "used": [self.names[k] if k < len(self.names) else str(k) for k in self.used],
            "pooled": {"model": float(self.pooled[0]), "teachers": [float(x) for x in self._sums(self.pooled)]},
            "per_label": {"model": self.slopes[0].copy(), "teachers": self._sums(self.slopes)},
            "precision": self.precision,
            "agreement": None if self.agreement is None else self.agreement.copy(),
        }

    def _sums(self, slopes: Floats) -> Floats:
        """Return the sum of the two slopes of each teacher, [K, ...]."""
        return slopes[1::2] + slopes[2::2]


class Fit(NamedTuple):
    """A combination, and its out-of-fold logits of the training entries, [N, L]."""

    combination: Combination
    out_of_fold: Floats


def fit(
    out_of_fold: npt.NDArray[Any],
    scores: Sequence[ScoreMatrix],
    labels: Labels,
    weights: Weights | None = None,
    seed: int = 0,
    names: Sequence[str] = (),
) -> Fit:
    """Fit the weights of the model's out-of-fold logits [N, L] and of each teacher's scores [N, L]."""
    items, count = labels.shape
    standardizations = tuple(measure(block for block in _blocks(teacher_scores)) for teacher_scores in scores)
    center = sum((block.sum(axis=0, dtype=np.float64) for block in _blocks(out_of_fold)), np.zeros(count)) / max(
        1, items
    )
    only_yes = not labels.counts()[1].any()
    scale = scale_model(out_of_fold, center, labels, weights, only_yes)
    entries = collect(out_of_fold, center, scale, scores, standardizations, labels, weights, only_yes, seed)
    slopes = stacking.fit(entries, count, len(scores), seed)
    nothing_known = not labels.counts()[0].any() and only_yes
    if nothing_known:
        slopes.slopes[0] = slopes.pooled[0] = 0.0  # the model has learned nothing
        slopes = replace(slopes, bias=np.zeros(count))
    combination = Combination(
        _unscale(slopes, scale),
        slopes.bias.astype(np.float32),
        center.astype(np.float32),
        slopes.pooled.astype(np.float32),
        slopes.precision,
        slopes.teachers,
        standardizations,
        None,
        tuple(names),
        measure_agreement(scores, standardizations) if len(scores) > 1 else None,
    )
    if not slopes.teachers:
        return Fit(combination, np.asarray(out_of_fold, np.float32))
    logits = _cross_fit(combination, scale, out_of_fold, scores, entries, slopes, seed)
    if nothing_known:  # shift the biases so that an item has EXPECTED_YES yes on average
        share = min(0.5, EXPECTED_YES / count)
        sample = logits[_sample_rows(items, MAX_THRESHOLD_ENTRIES // max(1, count), seed)]
        shift = np.float32(-np.quantile(sample, 1 - share))
        combination = replace(combination, bias=combination.bias + shift, thresholds=np.full(count, 0.5, np.float32))
        for rows in _row_blocks(items, count):
            logits[rows] += shift
        return Fit(combination, logits)
    return _set_thresholds(combination, logits, labels, weights, only_yes, seed)


def collect(
    logits: npt.NDArray[Any],
    center: npt.NDArray[Any],
    scale: npt.NDArray[Any],
    scores: Sequence[ScoreMatrix],
    parts: Sequence[Standardization],
    labels: Labels,
    weights: Weights | None,
    only_yes: bool,
    seed: int = 0,
) -> Entries:
    """Collect known entries with their inputs; all entries of some items where only yes is known."""
    items, count = labels.shape
    chosen = _choose_items(labels, only_yes, seed)
    if only_yes:
        row, column = (part.ravel() for part in np.meshgrid(chosen, np.arange(count), indexing="ij"))
        value = labels.rows(chosen).ravel()
    else:
        row, column, value = labels.entries() if len(chosen) == items else labels[chosen].entries()
        row = chosen[row]
    inputs = np.empty((len(row), 1 + 2 * len(scores)))
    for here in _row_blocks(items, count):
        first, last = np.searchsorted(row, [here.start, here.stop])
        if last > first:
            model = (logits[here] - center) * scale
            columns_of_inputs = inputs_of(model, [np.asarray(part[here]) for part in scores], parts)
            at = row[first:last] - here.start, column[first:last]
            inputs[first:last] = np.stack([block[at] for block in columns_of_inputs], axis=1)
    weight = np.ones(len(row))
    if weights is not None:
        weight = np.asarray(weights[row, column if weights.shape[1] > 1 else 0], np.float64)
    by_label = np.argsort(column, kind="stable")
    by_label = by_label[weight[by_label] > 0]
    target = (value > 0).astype(np.float64)
    return Entries(column[by_label], row[by_label], inputs[by_label], target[by_label], weight[by_label])


def scale_model(
    logits: npt.NDArray[Any], center: npt.NDArray[Any], labels: Labels, weights: Weights | None, only_yes: bool
) -> npt.NDArray[np.float64]:
    """Return the factor of the model's centered logits of each label, [L], at most 1."""
    count = labels.shape[1]
    if weights is None:
        yes, no = labels.counts()
    else:
        row, column, value = labels.entries()
        counted = np.asarray(weights[row, column if weights.shape[1] > 1 else 0]) > 0
        yes, no = (np.bincount(column[counted & (value == answer)], minlength=count) for answer in (1, 0))
    if only_yes:
        no = len(labels) - yes
    squares = np.zeros(count)
    for block in _blocks(logits):
        squares += np.square(block - center).sum(axis=0)
    size = np.sqrt(squares / max(1, len(labels)))
    bound = np.log1p(np.minimum(yes, no))
    factor: npt.NDArray[np.float64] = np.where(size > bound, bound / np.maximum(size, bound + 1e-12), 1.0)
    return factor


def _unscale(slopes: Slopes, scale: npt.NDArray[Any]) -> Floats:
    """Return slopes for the model's unscaled logits."""
    unscaled = slopes.slopes.astype(np.float32)
    unscaled[0] *= scale.astype(np.float32)
    return unscaled


def _choose_items(labels: Labels, only_yes: bool, seed: int) -> npt.NDArray[np.int64]:
    """Return the items whose entries are fitted: random ones if all together have too many entries."""
    items, count = labels.shape
    shuffled = np.random.default_rng(seed).permutation(items)
    per_item = np.full(items, count) if only_yes else labels.known_per_item()
    if not labels.counts()[0].any() and only_yes:
        return shuffled[:0]
    within = int(np.searchsorted(np.cumsum(per_item[shuffled]), stacking.MAX_ENTRIES, side="right"))
    return np.sort(shuffled[: max(1, within)])


def inputs_of(logits: Floats, scores: Sequence[Floats], parts: Sequence[Standardization]) -> list[Floats]:
    """Return the inputs of the regression, [B, L] each: logits, then each teacher's scores per label and per item."""
    inputs = [np.asarray(logits, np.float32)]
    for part, own in zip(parts, scores, strict=True):
        inputs += [part.per_label(own), part.per_item(own)]
    return inputs


def measure_agreement(scores: Sequence[ScoreMatrix], parts: Sequence[Standardization]) -> Floats:
    """Return correlations of the teachers' scores, [K, K], over entries with both opinions; 0 without any."""
    size = len(scores)
    sums = np.zeros((3, size, size))  # products, and squares of the first and of the second teacher
    for blocks in zip(*map(_blocks, scores), strict=True):
        values = [part.per_label(block).astype(np.float64) for part, block in zip(parts, blocks, strict=True)]
        has_opinion = [np.isfinite(block) & np.isfinite(part.scale) for part, block in zip(parts, blocks, strict=True)]
        for a, b in np.ndindex(size, size):
            x, y = (values[k][has_opinion[a] & has_opinion[b]] for k in (a, b))
            sums[:, a, b] += x @ y, x @ x, y @ y
    scale = np.sqrt(sums[1] * sums[2])
    correlation: Floats = np.divide(sums[0], scale, out=np.zeros((size, size)), where=scale > 0).astype(np.float32)
    return correlation


def _cross_fit(
    combination: Combination,
    scale: npt.NDArray[Any],
    out_of_fold: npt.NDArray[Any],
    scores: Sequence[ScoreMatrix],
    entries: Entries,
    slopes: Slopes,
    seed: int,
) -> Floats:
    """Return combined logits of the training entries, with slopes that were fitted without the item."""
    items, count = out_of_fold.shape
    fold = np.random.default_rng(seed).permutation(items) % FOLDS
    without_fold = []
    for k in range(FOLDS):
        fitted = stacking.refit(entries[fold[entries.item] != k], count, slopes) if len(entries) else slopes
        without_fold.append(replace(combination, slopes=_unscale(fitted, scale), bias=fitted.bias.astype(np.float32)))
    logits = allocate((items, count))
    for rows in _row_blocks(items, count):
        model, opinions = np.asarray(out_of_fold[rows], np.float32), [np.asarray(part[rows]) for part in scores]
        for k, fold_combination in enumerate(without_fold):
            at = np.flatnonzero(fold[rows] == k)
            logits[rows.start + at] = fold_combination(model[at], [part[at] for part in opinions])
    return logits


def _set_thresholds(
    combination: Combination, logits: Floats, labels: Labels, weights: Weights | None, only_yes: bool, seed: int
) -> Fit:
    """Calibrate biases for all entries, where yes and no are known at different rates, and choose thresholds."""
    items, count = labels.shape
    rows = _sample_rows(items, MAX_THRESHOLD_ENTRIES // max(1, count), seed)
    z, sample = labels.rows(rows).T, np.ascontiguousarray(np.asarray(logits[rows]).T)
    targets = (z > 0).astype(np.float32)
    known = np.ones_like(targets) if only_yes else (z != 0).astype(np.float32)
    if weights is not None:
        known = known * np.asarray(weights[rows], np.float32).T
    shift = np.zeros(len(targets))
    if not only_yes:
        population = reweight_by_missingness(sample, known, targets)
        if population is not known:
            entries = stacking.entries_of([sample], population, targets)
            shift = stacking.fit_shift(entries, len(targets))
            known = population
    sample = sample + shift.astype(np.float32)[:, None]
    p = (1 / (1 + np.exp(-np.clip(sample, -60, 60)))).astype(np.float32)
    called = best_thresholds(p, targets, only_yes, _gain(sample, known, targets))
    if only_yes:  # a probability of being known to be yes becomes one of being called yes
        shift, called = shift - np.log(called / (1 - called)), np.full_like(called, 0.5)
    for here in _row_blocks(items, count):
        logits[here] += shift.astype(np.float32)
    return Fit(replace(combination, bias=(combination.bias + shift).astype(np.float32), thresholds=called), logits)


def _gain(logits: Floats, weights: Floats, targets: Floats) -> float:
    """Share of the log loss of each label's frequency that the logits [L, N] take away."""
    total = weights.sum(axis=1, dtype=np.float64)
    rate = ((weights * targets).sum(axis=1, dtype=np.float64) + 1e-6) / (total + 2e-6)
    prior = float((total * -(rate * np.log(rate) + (1 - rate) * np.log1p(-rate))).sum())
    loss = float((weights * stacking.log_loss(logits, targets)).sum(dtype=np.float64))
    return 1 - loss / max(prior, 1e-12)


def _row_blocks(items: int, labels: int) -> Iterator[slice]:
    """Yield slices of items that cover all."""
    size = items_per_block(labels)
    return (slice(start, min(start + size, items)) for start in range(0, items, size))


def _blocks(array: ScoreMatrix) -> Iterator[Floats]:
    return (np.asarray(array[rows], np.float32) for rows in _row_blocks(*array.shape))


def _sample_rows(items: int, most: int, seed: int) -> slice | npt.NDArray[np.int64]:
    """Return at most so many random items; all of them as a slice."""
    if items <= most:
        return slice(None)
    return np.sort(np.random.default_rng(seed).permutation(items)[: max(1, most)])


def _plain(array: npt.NDArray[Any]) -> list[Any]:
    values: list[Any] = array.tolist()
    return values
