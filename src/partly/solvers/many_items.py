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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from partly.distributed.threads import parallel_map
from partly.model_choice.recalibration import moments, recalibrate
from partly.solvers.logistic import BLOCK, TOLERANCE, Floats, labels_with_both, minimum

MANY_ITEMS = 5000  # items; with fewer, `logistic` alone is faster
MAX_NUMBERS = 1 << 26  # feature values in memory; larger matrices are read again for every product
SEARCHED_ENTRIES, SEARCHED_LABELS = 1 << 16, 16  # that choose C; labels are added until both are reached
MIN_ENTRIES, ENTRIES_PER_FEATURE = 4096, 8  # per label for the choice of C: the larger number counts
SEARCH_TOLERANCE = 1e-4  # of fits for the choice of C
SAMPLE = 8192  # items from which axes are estimated; at least four per feature
MAX_ROTATED = 1024  # features; above it, eigenvectors cost more than they save
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


@dataclass(frozen=True)
class _RowsOfAxes:
    """Features of some items along shared axes, for the solver; mean and axes are applied to the coefficients."""

    x: Any  # [n, D]: an array, CSR, or `FeatureBlocks`
    axes: Floats | None  # [D, R]
    mean: Floats  # [D]
    squares: Floats  # [R]

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.shape[0], len(self.squares)

    def times(self, w: Floats) -> Floats:
        v = w if self.axes is None else w @ self.axes.T
        shift = (v @ self.mean)[:, None]
        product = np.empty((len(v), self.x.shape[0]), np.float32)
        for rows in _blocks(self.x):
            product[:, rows] = _product(self.x[rows], v)
        product -= shift
        return product

    def slopes(self, residual: Floats) -> Floats:
        product = np.zeros((len(residual), self.x.shape[1]), np.float32)
        for rows in _blocks(self.x):
            product += _product(self.x[rows].T, residual[:, rows])
        product -= residual.sum(axis=1)[:, None] * self.mean
        return product if self.axes is None else product @ self.axes


SearchJob = tuple[Job, _RowsOfAxes | None]  # with its features, if they are kept in memory


class ManyItems:
    """The problems of all labels and folds; weights and targets are [L, N], fold [N]."""

    def __init__(self, x: Any, weights: Floats, targets: Floats, fold: npt.NDArray[np.int64]) -> None:
        self.x, self.weights, self.targets, self.fold = x, weights, targets, fold
        self.folds = int(fold.max()) + 1
        self.solutions: dict[int, Solution] = {}  # of the labels that choose C, at the best C so far
        self._measure_axes()

    def _measure_axes(self) -> None:
        items, width = self.x.shape
        count = min(items, max(SAMPLE, 4 * width))
        self.mean, self.axes = np.zeros(width, np.float32), None
        if sp.issparse(self.x):
            x: Any = self.x
            self.mean = np.asarray(x.mean(axis=0), np.float32).ravel()
            squares = np.asarray(x.power(2).mean(axis=0), np.float32).ravel() - self.mean**2
            self.squares = np.maximum(squares, 0)
            return
        sample = self.x[np.sort(np.random.default_rng(0).permutation(items)[:count])]
        self.squares = np.einsum("ij,ij->j", sample, sample) / np.float32(count)
        largest = max((len(job.items) for job in self.jobs), default=0)
        if width <= MAX_ROTATED and largest >= 2 * width:
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
        features = [self._rows(job.items) if fits_in_memory else None for job in self.search_jobs]
        jobs = list(zip(self.search_jobs, features, strict=True))
        solved: Sequence[Solution | None] = [None] * len(jobs)
        for c in c_values if jobs else ():
            solutions = self._solve_searched(jobs, c, solved)
            loss = self._loss(jobs, solutions)
            solved = solutions
            values_behind = 0 if loss < best[0] else values_behind + 1
            if not values_behind:
                best = loss, c
                for job, solution in zip(self.search_jobs, solutions, strict=True):
                    self._store(job, solution)
            if values_behind == patience:
                break
        return best[1]

    def _solve_searched(self, jobs: list[SearchJob], c: float, previous: Sequence[Solution | None]) -> list[Solution]:
        """Solve the folds of the labels that choose C, starting at the solutions for the previous C."""

        def solve(job_and_start: tuple[SearchJob, Solution | None]) -> Solution:
            (job, rows), start = job_and_start
            return self._solve(job, c, start, SEARCH_TOLERANCE, rows)

        return parallel_map(solve, list(zip(jobs, previous, strict=True)))

    def _store(self, job: Job, solution: Solution) -> None:
        w, b = solution
        self.solutions |= {int(label): (w[:, [i]], b[:, [i]]) for i, label in enumerate(job.labels)}

    def _loss(self, jobs: list[SearchJob], solved: list[Solution]) -> float:
        """Return the loss of held-out known entries after recalibration."""
        held_out = [self._score_held_out_known(job, rows, w) for (job, rows), (w, _) in zip(jobs, solved, strict=True)]
        width = max((block.shape[2] for block in held_out), default=0)
        scores, weights, targets = np.concatenate(
            [np.pad(block, ((0, 0), (0, 0), (0, width - block.shape[2]))) for block in held_out], axis=1
        )
        return recalibrate(scores, weights, targets)[0]

    def _score_held_out_known(self, job: Job, rows: _RowsOfAxes | None, w: Floats) -> Floats:
        """Return z-scored scores, weights and targets of the items of a job, [3, labels, n]."""
        fold_scores = (
            (rows or self._rows(job.items)).times(w.reshape(-1, w.shape[2])).reshape(len(w), len(job.labels), -1)
        )
        fold = self.fold[job.items]
        scores = np.take_along_axis(fold_scores, fold[None, None], axis=0)[0]
        mean, factor = moments(scores)
        z = ((scores - mean[:, None]) * factor[:, None]).astype(np.float32)
        at = np.ix_(job.labels, job.items)
        return np.stack([z, self.weights[at], self.targets[at]])

    # ---------------------------------------------------------------- fits

    def fit(self, c: float) -> tuple[Floats, Floats, Floats]:
        """Return coefficients [L, D], biases [L] and out-of-fold scores without bias, [L, N]."""
        solved = parallel_map(lambda job: self._solve_all(job, c), self.jobs)
        shape = len(self.weights), len(self.squares)
        w, b = np.zeros((self.folds + 1, *shape), np.float32), np.zeros(shape[0], np.float32)
        for job, (weights, bias) in zip(self.jobs, solved, strict=True):
            w[:, job.labels], b[job.labels] = weights, bias[-1]
            self._store(job, (weights[:-1], bias[:-1]))
        w = w if self.axes is None else w @ self.axes.T
        return w[-1], b - w[-1] @ self.mean, self._score_held_out(w[:-1])

    def _solve_all(self, job: Job, c: float) -> Solution:
        """Solve the folds and all items, [folds + 1, labels, ...]."""
        rows, start = self._rows(job.items), None
        if all(int(j) in self.solutions for j in job.labels):
            known = [self.solutions[int(j)] for j in job.labels]
            start = np.concatenate([w for w, _ in known], axis=1), np.concatenate([b for _, b in known], axis=1)
        w, b = self._solve(job, c, start, TOLERANCE, rows)
        mean = w.mean(axis=0, keepdims=True), b.mean(axis=0, keepdims=True)
        whole = self._solve(job, c, mean, TOLERANCE, rows, whole=True)
        return np.concatenate([w, whole[0]]), np.concatenate([b, whole[1]])

    def _solve(
        self,
        job: Job,
        c: float,
        start: Solution | None,
        tolerance: float,
        rows: _RowsOfAxes | None,
        whole: bool = False,
    ) -> Solution:
        """Solve each fold of a job, or all of its items: [folds, labels, R] and [folds, labels]."""
        at, fold = np.ix_(job.labels, job.items), self.fold[job.items]
        masks = [np.ones(len(fold), bool)] if whole else [fold != k for k in range(self.folds)]
        weights = self.weights[at]
        weights, targets = (
            np.concatenate([weights * mask for mask in masks]),
            np.tile(self.targets[at], (len(masks), 1)),
        )
        flat = None if start is None else (start[0].reshape(len(weights), -1), start[1].ravel())
        w, b = minimum(rows or self._rows(job.items), weights, targets, c, flat, tolerance)
        return w.reshape(len(masks), len(job.labels), -1), b.reshape(len(masks), -1)

    def _rows(self, items: Rows) -> _RowsOfAxes:
        """Return the features of some items, in memory if they fit."""
        is_whole = len(items) == self.x.shape[0] and isinstance(self.x, np.ndarray)
        if not sp.issparse(self.x) and not is_whole and len(items) * self.x.shape[1] > MAX_NUMBERS:
            x = FeatureBlocks(len(items), self.x.shape[1], lambda rows: self.x[items[rows]])
        else:
            x = self.x if is_whole else self.x[items]
        return _RowsOfAxes(x, self.axes, self.mean, self.squares)

    def _score_held_out(self, w: Floats) -> Floats:
        """Return the score of every entry by the fit without its item, [L, N]."""
        scores = np.empty(self.weights.shape, np.float32)
        shift = w @ self.mean
        for rows in _blocks(self.x, always=True):
            x, fold = self.x[rows], self.fold[rows]
            for k in range(self.folds):
                held_out = np.flatnonzero(fold == k)
                scores[:, rows.start + held_out] = _product(x[held_out], w[k]) - shift[k][:, None]
        return scores


def _product(x: Any, w: Floats) -> Floats:
    """Return w [L, D] times x [N, D], transposed: [L, N]; for few rows, BLAS is faster vector by vector."""
    if len(w) <= MAX_SINGLE_ROWS and not sp.issparse(x):
        return np.array([x @ row for row in w], np.float32).reshape(len(w), x.shape[0])
    product: Floats = np.ascontiguousarray((x @ w.T).T)
    return product


def _blocks(x: Any, always: bool = False) -> list[slice]:
    """Return blocks of rows: one for features in memory, unless `always`."""
    items, width = x.shape
    lazy = always or not (isinstance(x, np.ndarray) or sp.issparse(x))
    size = max(1, BLOCK // max(1, width)) if lazy else max(1, items)
    return [slice(start, min(items, start + size)) for start in range(0, items, size)]
