"""Cross-validated logistic regressions: C is chosen by the held-out log loss of folds over the items.

All labels share one C. The folds are solved as additional labels, since they share the features. A held-out entry is
scored without the bias of its fold: the bias depends on how many positives are held out, so a held-out positive would
lower its own score, and with few known positives the constant model would win. The log loss is that after
`calibration`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.solvers.calibration import calibrate
from partly.solvers.logistic import (
    BLOCK,
    Features,
    Floats,
    PrincipalAxes,
    label_rows,
    principal_axes,
    regularization_path,
    regularization_path_by_label,
)
from partly.solvers.many_items import MANY_ITEMS, MAX_NUMBERS, FeatureBlocks, ManyItems

GRID = tuple(0.03 * 3.0**k for k in range(9))  # C, relative to the total mean square of the features
MIN_PENALTY = 1e-6  # of the mean loss; separable labels have no solution without a penalty
PATIENCE = 2  # number of successively worse C before the search stops
FIVE_FOLDS_BELOW = 2000  # items; five folds below, else three
MIN_FEATURES_BY_LABEL = 500  # features; above it, labels with few entries are solved separately
Fold = npt.NDArray[np.int64]


def memory(items: int, labels: int, width: int) -> int:
    """Return the bytes that `solve` needs: the features twice, and weights, targets and solver state of each fold. With
    many items, those of a few labels at a time."""
    folds = 5 if items < FIVE_FOLDS_BELOW else 3
    entries = items * labels
    if items >= MANY_ITEMS:
        return 8 * min(items * width, MAX_NUMBERS) + 4 * MAX_NUMBERS + 24 * entries + 40 * BLOCK
    return 8 * items * width + 4 * entries * (5 * folds + 5) + 40 * min(entries * folds, BLOCK)


@dataclass(frozen=True)
class CrossValidatedFit:
    """Logistic regressions with the best C, w [L, D] and b [L], and their held-out loss."""

    w: Floats
    b: Floats
    c: float
    loss: float  # calibrated held-out loss
    held_out: Floats  # out-of-fold scores up to a bias, [L, N]


def assign_folds(items: int, seed: int) -> Fold:
    """Return the fold of each item, [N]."""
    folds = min(items, 5 if items < FIVE_FOLDS_BELOW else 3)  # a single item is one fold, without training items
    return np.random.default_rng(seed).permutation(np.arange(items) % max(1, folds))


def solve(x: Features, weights: Floats, targets: Floats, fold: Fold, penalty: float | None = None) -> CrossValidatedFit:
    """Choose C by cross-validation, then fit all items.

    penalty: use this penalty of the mean loss, penalty / 2 * |w|^2, instead of choosing one.
    """
    if len(fold) >= MANY_ITEMS:
        return _solve_many(ManyItems(x, weights, targets, fold), penalty)
    fits = choose_solver(x, weights)
    c_values = _candidates(fits.square, penalty, len(fold))
    best, held_out, behind = (np.inf, c_values[0]), np.zeros_like(weights), 0
    for c, scores in zip(c_values, _score_held_out(fits, weights, targets, c_values, fold), strict=True):
        loss = calibrate(scores, weights, targets).loss
        behind = 0 if loss < best[0] else behind + 1
        if not behind:
            best, held_out = (loss, c), scores
        if behind == PATIENCE:
            break
    everything = np.ones((1, len(fold)), bool)
    w, b = fits.to_original(*next(fits.path(weights, targets, everything, [best[1]])))
    return CrossValidatedFit(w, b, best[1], best[0], held_out)


def _candidates(square: float, penalty: float | None, items: int) -> list[float]:
    """Return the values of C to try, from strong regularization to weak."""
    if penalty is not None:
        return [1 / (max(penalty, MIN_PENALTY) * max(1, items))]
    return [size / max(square, 1e-12) for size in GRID]


def _solve_many(problem: ManyItems, penalty: float | None) -> CrossValidatedFit:
    """Choose C on a sample; where it left out entries, accept weaker regularization while all entries favor it."""
    c_values = _candidates(problem.square, penalty, len(problem.fold))
    c = c_values[0] if len(c_values) == 1 else problem.search(c_values, PATIENCE)
    best = _fit_many(problem, c)
    weaker = c_values[c_values.index(c) + 1 :] if problem.leaves_out_entries else []
    for c in weaker:
        refit = _fit_many(problem, c)
        if refit.loss >= best.loss:
            break
        best = refit
    return best


def _fit_many(problem: ManyItems, c: float) -> CrossValidatedFit:
    w, b, held_out = problem.fit(c)
    return CrossValidatedFit(w, b, c, calibrate(held_out, problem.weights, problem.targets).loss, held_out)


class _AllLabels:
    """Solver of all labels at once, on the principal axes of the features."""

    def __init__(self, x: Features) -> None:
        self.axes: PrincipalAxes = principal_axes(x)
        self.square = float(self.axes.squares.sum())
        self.times, self.to_original = self.axes.times, self.axes.to_original

    def path(
        self, weights: Floats, targets: Floats, seen: npt.NDArray[np.bool_], c_values: list[float]
    ) -> Iterator[tuple[Floats, Floats]]:
        stacked = np.concatenate([weights * part for part in seen])
        return regularization_path(self.axes, stacked, np.tile(targets, (len(seen), 1)), c_values)


class _LabelByLabel:
    """Solver of each label on the rows of its own entries."""

    def __init__(self, x: Floats, weights: Floats) -> None:
        self.x, self.rows = x, label_rows(x, weights)
        self.square = float(np.einsum("ij,ij->", x, x, dtype=np.float64) / max(1, len(x)))

    def path(
        self, weights: Floats, targets: Floats, seen: npt.NDArray[np.bool_], c_values: list[float]
    ) -> Iterator[tuple[Floats, Floats]]:
        return regularization_path_by_label(self.rows, weights, targets, seen, c_values)

    def times(self, w: Floats, rows: npt.NDArray[np.intp]) -> Floats:
        product: Floats = w @ self.x[rows].T
        return product

    def to_original(self, w: Floats, b: Floats) -> tuple[Floats, Floats]:
        return w, b


def choose_solver(x: Features, weights: Floats) -> _AllLabels | _LabelByLabel:
    """Return the faster solver."""
    x = x[:] if isinstance(x, FeatureBlocks) else x
    known, width = np.count_nonzero(weights) / max(1, len(weights)), x.shape[1]
    alone = not sp.issparse(x) and width >= MIN_FEATURES_BY_LABEL and known <= width / 2
    return _LabelByLabel(x, weights) if alone else _AllLabels(x)


def _score_held_out(
    fits: _AllLabels | _LabelByLabel, weights: Floats, targets: Floats, c_values: list[float], fold: Fold
) -> Iterator[Floats]:
    """Yield for each C the scores of every entry, without bias, by the fold that did not see it: [L, N]."""
    folds = int(fold.max()) + 1
    train_masks = np.stack([fold != k for k in range(folds)])
    for w, _ in fits.path(weights, targets, train_masks, c_values):
        scores = np.empty(weights.shape, np.float32)
        for k, part in enumerate(w.reshape(folds, len(weights), -1)):
            rows = np.flatnonzero(fold == k)
            scores[:, rows] = fits.times(part, rows)
        yield scores
