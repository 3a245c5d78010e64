"""Cross-validated logistic regressions for many items. Cost is proportional to the known entries; memory is bounded.

Each label is solved on the items whose entry is known. Labels with the same known items are solved together; all labels
are, if most entries are known. All folds of a label share a batch, and the fit to all items starts at the mean of its
folds.

C is chosen on a sample of labels and of their entries. If entries were left out, weaker regularization is then tried on
all of them.

Features are read by rows, so they may be an array, CSR, or `FeatureBlocks` that are computed when read. They are
rotated to the principal axes of a sample of items, which does not change the minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from partly.distributed.threads import parallel_map
from partly.model_choice.recalibration import moments, recalibrate
from partly.solvers.logistic import BLOCK, TOLERANCE, Floats, Rotated, labels_with_both, minimum

MANY_ITEMS = 5000  # items; with fewer, `logistic` alone is faster
MAX_NUMBERS = 1 << 26  # feature values in memory; larger matrices are read again for every product
SEARCHED_ENTRIES, SEARCHED_LABELS = 1 << 16, 16  # that choose C; labels are added until both are reached
MIN_ENTRIES, ENTRIES_PER_FEATURE = 4096, 8  # per label for the choice of C: the larger number counts
SEARCH_TOLERANCE = 1e-4  # of fits for the choice of C
SAMPLE = 8192  # items from which axes are estimated; at least four per feature
SAMPLE_OF_SQUARES = 2048  # items from which mean squares are estimated
MAX_ROTATED = 1024  # features; above it, eigenvectors cost more than they save
BUNDLED_NUMBERS = 1 << 20  # features of labels that are solved together, each on its own items: they stay in the cache
CACHED_NUMBERS, MIN_BLOCK_ITEMS = 1 << 18, 256  # of blocks of features, where blocks are faster than all items
MAX_SINGLE_ROWS = 4  # rows of coefficients that are multiplied one by one
DENSE = 0.4  # share of known entries from which all labels are solved on the same items
Rows = npt.NDArray[np.intp]
Solution = tuple[Floats, Floats]  # coefficients [folds, labels, R] and biases [folds, labels]


class FeatureBlocks:
    """Features [N, D] that are computed when rows are read."""

    def __init__(self, items: int, width: int, read: Callable[[Any], Floats]) -> None:
        self.shape, self.read = (items, width), read

    def __getitem__(self, rows: Any) -> Floats:
        return self.read(rows)


@dataclass(frozen=True)
class Job:
    """Labels that are solved together, and the items that they are solved on."""

    labels: Rows
    items: Rows


Bundle = list[Job]  # jobs that one solver runs together


@dataclass(frozen=True)
class _Axes:
    """Shared axes of features; mean and axes are applied to coefficients instead of features."""

    axes: Floats | None  # [D, R]
    mean: Floats  # [D]
    squares: Floats  # [R]

    def to_features(self, w: Floats) -> tuple[Floats, Floats]:
        """Return coefficients of features [L, D] for those of axes [L, R], and the scores of the mean [L, 1]."""
        v: Floats = w if self.axes is None else w @ self.axes.T
        shift: Floats = v @ self.mean
        return v, shift[:, None]

    def from_features(self, slopes: Floats, residual: Floats) -> Floats:
        """Return the gradient along the axes [L, R], from that of features [L, D] and residuals [L, N]."""
        slopes -= residual.sum(axis=1)[:, None] * self.mean
        return slopes if self.axes is None else slopes @ self.axes


@dataclass(frozen=True)
class _SharedRows:
    """Features of items that labels share, for the solver."""

    x: Any  # [n, D]: an array, CSR, or `FeatureBlocks`
    axes: _Axes

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.shape[0], len(self.squares)

    @property
    def squares(self) -> Floats:
        return self.axes.squares

    def times(self, w: Floats) -> Floats:
        v, shift = self.axes.to_features(w)
        product = np.empty((len(v), self.x.shape[0]), np.float32)
        for rows in _blocks(self.x):
            product[:, rows] = _product(self.x[rows], v)
        product -= shift
        return product

    def slopes(self, residual: Floats) -> Floats:
        product = np.zeros((len(residual), self.x.shape[1]), np.float32)
        for rows in _blocks(self.x):
            product += _product(self.x[rows].T, residual[:, rows])
        return self.axes.from_features(product, residual)

    def keep(self, labels: Any) -> _SharedRows:
        return self


@dataclass(frozen=True)
class _OwnRows:
    """Features of labels that have items of their own, for the solver. Beyond the items of a label, weights are 0."""

    x: list[Any]  # [n, D] of each label
    axes: _Axes
    label: Rows  # of each row of coefficients

    @property
    def shape(self) -> tuple[int, int]:
        return max(x.shape[0] for x in self.x), len(self.squares)

    @property
    def squares(self) -> Floats:
        return self.axes.squares

    def times(self, w: Floats) -> Floats:
        v, shift = self.axes.to_features(w)
        product = np.zeros((len(v), self.shape[0]), np.float32)
        for row, label in enumerate(self.label):
            x = self.x[label]
            product[row, : x.shape[0]] = x @ v[row]
        product -= shift
        return product

    def slopes(self, residual: Floats) -> Floats:
        product = np.empty((len(residual), self.x[0].shape[1]), np.float32)
        for row, label in enumerate(self.label):
            x = self.x[label]
            product[row] = x.T @ residual[row, : x.shape[0]]
        return self.axes.from_features(product, residual)

    def keep(self, labels: Any) -> _OwnRows:
        return replace(self, label=self.label[labels])


Entries = tuple[Floats, Floats, npt.NDArray[np.int64]]  # weights, targets and fold of the items of labels, [L, n]
SearchBundle = tuple[Bundle, Entries, Rotated | None]  # with its features, if they are kept in memory


class ManyItems:
    """The problems of all labels and folds; weights and targets are [L, N], fold [N]."""

    def __init__(self, x: Any, weights: Floats, targets: Floats, fold: npt.NDArray[np.int64]) -> None:
        self.x, self.weights, self.targets, self.fold = x, weights, targets, fold
        self.folds = int(fold.max()) + 1
        self.solutions: dict[int, Solution] = {}  # of the labels that choose C, at the best C so far
        self._measure_axes()

    def _measure_axes(self) -> None:
        items, width = self.x.shape
        largest = max((len(job.items) for job in self.jobs), default=0)
        rotates = width <= MAX_ROTATED and largest >= 2 * width
        count = min(items, max(SAMPLE, 4 * width) if rotates else SAMPLE_OF_SQUARES)
        self.mean, self.axes = np.zeros(width, np.float32), None
        if sp.issparse(self.x):
            x: Any = self.x
            self.mean = np.asarray(x.mean(axis=0), np.float32).ravel()
            squares = np.asarray(x.power(2).mean(axis=0), np.float32).ravel() - self.mean**2
            self.squares = np.maximum(squares, 0)
            return
        sample = self.x[np.sort(np.random.default_rng(0).permutation(items)[:count])]
        self.squares = np.einsum("ij,ij->j", sample, sample) / np.float32(count)
        if rotates:
            values, self.axes = scipy.linalg.eigh(sample.T @ sample / np.float32(count), driver="evd")
            self.squares = np.maximum(values, 0)

    @property
    def square(self) -> float:
        """Return the total mean square of the features."""
        return float(self.squares.sum(dtype=np.float64))

    @cached_property
    def jobs(self) -> list[Job]:
        """Labels with the same known items, or all labels where most entries are known."""
        known = self.weights > 0
        labelled_items = np.flatnonzero(known.any(axis=0))
        if known.sum() >= DENSE * len(known) * max(1, len(labelled_items)):
            groups = [(np.arange(len(known)), labelled_items)]
        else:
            rows: dict[bytes, list[int]] = {}
            for label, bits in enumerate(np.packbits(known, axis=1)):
                rows.setdefault(bits.tobytes(), []).append(label)
            groups = [(np.array(labels), np.flatnonzero(known[labels[0]])) for labels in rows.values()]
        return [Job(part, items) for labels, items in groups for part in self._chunks(labels, len(items))]

    def _chunks(self, labels: Rows, items: int) -> list[Rows]:
        size = max(1, BLOCK // max(1, items * (self.folds + 1)))
        return [labels[start : start + size] for start in range(0, len(labels), size)]

    # ---------------------------------------------------------------- choice of C

    @cached_property
    def search_jobs(self) -> list[Job]:
        """Random labels, each with a sample of its items, on which C is chosen."""
        max_entries = max(MIN_ENTRIES, ENTRIES_PER_FEATURE * self.x.shape[1])
        rng, chosen, entries, labels = np.random.default_rng(1), [], 0, 0
        labels_to_search = labels_with_both(self.weights, self.targets)
        for number in rng.permutation(len(self.jobs)):
            job = self.jobs[number]
            items = np.sort(rng.permutation(job.items)[:max_entries])
            searched_labels = np.intersect1d(job.labels, labels_to_search)[:SEARCHED_LABELS]
            if len(searched_labels) and (entries < SEARCHED_ENTRIES or labels < SEARCHED_LABELS):
                chosen.append(Job(searched_labels, items))
                entries, labels = entries + len(searched_labels) * len(items), labels + len(searched_labels)
        return chosen

    @property
    def leaves_out_entries(self) -> bool:
        """Tell whether the choice of C leaves out most entries of a label that chooses it."""
        sizes = {int(label): len(job.items) for job in self.jobs for label in job.labels}
        return any(len(job.items) < sizes[int(job.labels[0])] / 2 for job in self.search_jobs)

    def search(self, c_values: Sequence[float], patience: int) -> float:
        """Return the C with the smallest held-out loss; stop after `patience` worse ones in succession."""
        best, values_behind = (np.inf, c_values[0]), 0
        fits_in_memory = sum(len(job.items) for job in self.search_jobs) * self.x.shape[1] <= MAX_NUMBERS
        bundles = self._bundle(self.search_jobs)
        searched = [
            (bundle, self._entries(bundle), self._features(bundle) if fits_in_memory else None) for bundle in bundles
        ]
        solved: Sequence[Solution | None] = [None] * len(bundles)
        for c in c_values if bundles else ():
            solutions = self._solve_searched(searched, c, solved)
            loss = self._loss(searched, solutions)
            solved = solutions
            values_behind = 0 if loss < best[0] else values_behind + 1
            if not values_behind:
                best = loss, c
                for bundle, solution in zip(bundles, solutions, strict=True):
                    self._store(bundle, solution)
            if values_behind == patience:
                break
        return best[1]

    def _solve_searched(
        self, searched: list[SearchBundle], c: float, previous: Sequence[Solution | None]
    ) -> list[Solution]:
        """Solve the folds of the labels that choose C, starting at the solutions for the previous C."""

        def solve(searched_and_start: tuple[SearchBundle, Solution | None]) -> Solution:
            (bundle, entries, x), start = searched_and_start
            return self._solve(entries, x or self._features(bundle), c, start, SEARCH_TOLERANCE)

        return parallel_map(solve, list(zip(searched, previous, strict=True)))

    def _store(self, bundle: Bundle, solution: Solution) -> None:
        w, b = solution
        self.solutions |= {label: (w[:, [i]], b[:, [i]]) for i, label in enumerate(_labels(bundle).tolist())}

    def _loss(self, searched: list[SearchBundle], solved: list[Solution]) -> float:
        """Return the loss of held-out known entries after recalibration."""
        held_out = [self._score_held_out_known(*each, w) for each, (w, _) in zip(searched, solved, strict=True)]
        width = max((block.shape[2] for block in held_out), default=0)
        scores, weights, targets = np.concatenate(
            [np.pad(block, ((0, 0), (0, 0), (0, width - block.shape[2]))) for block in held_out], axis=1
        )
        return recalibrate(scores, weights, targets)[0]

    def _score_held_out_known(self, bundle: Bundle, entries: Entries, x: Rotated | None, w: Floats) -> Floats:
        """Return z-scored scores, weights and targets of the items of a bundle, [3, labels, n]."""
        weights, targets, fold = entries
        fold_scores = _for_folds(x or self._features(bundle), *w.shape[:2]).times(w.reshape(-1, w.shape[2]))
        scores = np.take_along_axis(fold_scores.reshape(*w.shape[:2], -1), fold[None], axis=0)[0]
        z = np.zeros_like(scores)
        for span, job in _spans(bundle):
            job_scores = scores[span, : len(job.items)]
            mean, factor = moments(job_scores)
            z[span, : len(job.items)] = (job_scores - mean[:, None]) * factor[:, None]
        return np.stack([z, weights, targets])

    # ---------------------------------------------------------------- fits

    def fit(self, c: float) -> tuple[Floats, Floats, Floats]:
        """Return coefficients [L, D], biases [L] and out-of-fold scores without bias, [L, N]."""
        bundles = self._bundle(self.jobs)
        solved = parallel_map(lambda bundle: self._solve_all(bundle, c), bundles)
        shape = len(self.weights), len(self.squares)
        w, b = np.zeros((self.folds + 1, *shape), np.float32), np.zeros(shape[0], np.float32)
        for bundle, (weights, bias) in zip(bundles, solved, strict=True):
            w[:, _labels(bundle)], b[_labels(bundle)] = weights, bias[-1]
            self._store(bundle, (weights[:-1], bias[:-1]))
        w = w if self.axes is None else w @ self.axes.T
        return w[-1], b - w[-1] @ self.mean, self._score_held_out(w[:-1])

    def _solve_all(self, bundle: Bundle, c: float) -> Solution:
        """Solve the folds and all items, [folds + 1, labels, ...]."""
        x, entries, start = self._features(bundle), self._entries(bundle), None
        labels = _labels(bundle).tolist()
        if all(j in self.solutions for j in labels):
            known = [self.solutions[j] for j in labels]
            start = np.concatenate([w for w, _ in known], axis=1), np.concatenate([b for _, b in known], axis=1)
        w, b = self._solve(entries, x, c, start, TOLERANCE)
        mean = w.mean(axis=0, keepdims=True), b.mean(axis=0, keepdims=True)
        whole = self._solve(entries, x, c, mean, TOLERANCE, whole=True)
        return np.concatenate([w, whole[0]]), np.concatenate([b, whole[1]])

    def _solve(
        self, entries: Entries, x: Rotated, c: float, start: Solution | None, tolerance: float, whole: bool = False
    ) -> Solution:
        """Solve each fold of a bundle, or all of its items: [folds, labels, R] and [folds, labels]."""
        weights, targets, fold = entries
        fit_weights = [weights] if whole else [weights * (fold != k) for k in range(self.folds)]
        shape = len(fit_weights), len(targets), len(self.squares)
        flat = None if start is None else (start[0].reshape(-1, shape[2]), start[1].ravel())
        x = _for_folds(x, *shape[:2])
        w, b = minimum(x, np.concatenate(fit_weights), np.tile(targets, (len(fit_weights), 1)), c, flat, tolerance)
        return w.reshape(shape), b.reshape(shape[:2])

    def _bundle(self, jobs: list[Job]) -> list[Bundle]:
        """Gather jobs of one label with few numbers, which the solver spends less time on than on itself."""
        bundles: list[Bundle] = []
        room = 0
        for job in jobs:
            numbers = len(job.items) * self.x.shape[1] if len(job.labels) == 1 else BUNDLED_NUMBERS
            if numbers > room:
                bundles.append([])
                room = BUNDLED_NUMBERS
            bundles[-1].append(job)
            room -= numbers
        return bundles

    def _entries(self, bundle: Bundle) -> Entries:
        shape = len(_labels(bundle)), max(len(job.items) for job in bundle)
        weights, targets, fold = np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape, np.int64)
        for span, job in _spans(bundle):
            own, at = (span, slice(len(job.items))), np.ix_(job.labels, job.items)
            weights[own], targets[own], fold[own] = self.weights[at], self.targets[at], self.fold[job.items]
        return weights, targets, fold

    def _features(self, bundle: Bundle) -> Rotated:
        """Return the features of the items of each label, in memory if they fit."""
        axes = _Axes(self.axes, self.mean, self.squares)
        if len(bundle) == 1:
            return _SharedRows(self._rows(bundle[0].items), axes)
        return _OwnRows([self._rows(job.items) for job in bundle], axes, np.arange(len(bundle)))

    def _rows(self, items: Rows) -> Any:
        is_whole = len(items) == self.x.shape[0] and isinstance(self.x, np.ndarray)
        if not sp.issparse(self.x) and not is_whole and len(items) * self.x.shape[1] > MAX_NUMBERS:
            return FeatureBlocks(len(items), self.x.shape[1], lambda rows: self.x[items[rows]])
        return self.x if is_whole else self.x[items]

    def _score_held_out(self, w: Floats) -> Floats:
        """Return the score of every entry by the fit without its item, [L, N]."""
        scores = np.empty(self.weights.shape, np.float32)
        shift = w @ self.mean
        for rows in _blocks(self.x, CACHED_NUMBERS):
            x, fold = self.x[rows], self.fold[rows]
            block = np.empty((x.shape[0], len(scores)), np.float32)
            for k in range(self.folds):
                held_out = np.flatnonzero(fold == k)
                block[held_out] = x[held_out] @ w[k].T - shift[k]
            scores[:, rows] = block.T
        return scores


def _labels(bundle: Bundle) -> Rows:
    return np.concatenate([job.labels for job in bundle])


def _spans(bundle: Bundle) -> Iterator[tuple[slice, Job]]:
    """Yield each job with the range of its labels in the bundle."""
    start = 0
    for job in bundle:
        yield slice(start, start + len(job.labels)), job
        start += len(job.labels)


def _for_folds(x: Rotated, folds: int, labels: int) -> Rotated:
    """Return the features for the labels of each fold."""
    return x.keep(np.tile(np.arange(labels), folds))


def _product(x: Any, w: Floats) -> Floats:
    """Return w [L, D] times x [N, D], transposed: [L, N]; for few rows, BLAS is faster vector by vector."""
    if len(w) <= MAX_SINGLE_ROWS and not sp.issparse(x):
        return np.array([x @ row for row in w], np.float32).reshape(len(w), x.shape[0])
    product: Floats = np.ascontiguousarray((x @ w.T).T)
    return product


def _blocks(x: Any, numbers: int = 0) -> list[slice]:
    """Return blocks of rows of so many numbers; by default one block for features in memory."""
    items, width = x.shape
    in_memory = isinstance(x, np.ndarray) or sp.issparse(x)
    size = max(MIN_BLOCK_ITEMS, (numbers or BLOCK) // max(1, width)) if numbers or not in_memory else max(1, items)
    return [slice(start, min(items, start + size)) for start in range(0, items, size)]
