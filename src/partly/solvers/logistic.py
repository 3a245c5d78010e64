"""Weighted logistic regressions for all labels at once, along a path of regularization strengths.

For each label j, minimize over its weights w_j and its bias b_j the sum over items i of

    weight_ij * cross-entropy(x_i w_j + b_j, target_ij)  +  |w_j|^2 / (2 C)

The bias is not penalized. A weight of 0 leaves an entry out, and targets may lie between 0 and 1. The problems are
convex and share their features. The features are rotated once into their principal axes, where the Hessian of every
label is nearly diagonal. One batched L-BFGS (Liu and Nocedal, 1989), preconditioned by that diagonal, then solves all
labels together: two matrix products per iteration, line searches on the logits, and converged labels are dropped.

scikit-learn solves one label at a time, and from scratch for each C. With many features and few entries per label,
`regularization_path_by_label` also solves each label on its own rows, but all folds and all C share one rotation.
benchmarks/learner.py measures both against scikit-learn.

Arrays are label-major: logits, weights and targets are [L, N], coefficients [L, D].
"""

# Long because the pieces of one iteration belong together; `folds` chooses C.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

Floats = npt.NDArray[np.float32]
Features = Any  # [N, D], a dense array or a CSR one
Path = Iterator[tuple[Floats, Floats]]
Pair = tuple[
    Floats, Floats, Floats, Floats, Floats
]  # a step and the change of the gradient, for weights and bias, and 1 / their product

MEMORY = 6  # history size of L-BFGS
TOLERANCE = 1e-5  # predicted gain of a Newton step, relative to the initial loss
ITERATIONS = 100  # maximum per C
MAX_ROTATED = 3000  # features or items; above it, eigenvectors cost more than they save
BLOCK = 1 << 22  # entries per block
MIN_AXIS = 1e-6  # relative to the largest axis; shorter ones are dropped
MAX_TRIALS, MIN_SLOPE_SHARE = 6, 0.5  # of a line search: trials, and the accepted share of the slope


class Rotated(Protocol):
    """Features of N items along R axes, as the solver reads them."""

    @property
    def shape(self) -> tuple[int, int]: ...  # N and R

    @property
    def squares(self) -> Floats: ...  # [R], variances along the axes

    def times(self, w: Floats) -> Floats: ...  # [L, N]

    def slopes(self, residual: Floats) -> Floats: ...  # [L, R]

    def keep(self, labels: Any) -> Rotated: ...  # for some of the labels


@dataclass(frozen=True)
class PrincipalAxes:
    """Features rotated into their principal axes, x [N, R]. Sparse and very wide features are not rotated.

    Sparse features are not centered; their mean is subtracted in every product.
    """

    x: Features
    axes: tuple[Floats, ...]  # [D, R], as a product of up to two matrices
    mean: Floats  # [R], of x
    squares: Floats  # [R], variances of x

    @property
    def shape(self) -> tuple[int, int]:
        """Return N and R."""
        items, width = self.x.shape
        return items, width

    def times(self, w: Floats, rows: Any = slice(None)) -> Floats:
        """Return scores [L, N] of some items by coefficients [L, R]."""
        product: Floats = (self.x[rows] @ w.T).T - (w @ self.mean)[:, None]  # in this order, since x may be sparse
        return product

    def slopes(self, residual: Floats) -> Floats:
        """Return the gradient of the coefficients, [L, R], from residuals [L, N]."""
        product: Floats = (self.x.T @ residual.T).T - residual.sum(axis=1)[:, None] * self.mean
        return product

    def keep(self, labels: Any) -> PrincipalAxes:
        """Return the features for some of the labels: all labels share them."""
        return self

    def to_original(self, w: Floats, b: Floats) -> tuple[Floats, Floats]:
        """Return coefficients [L, D] and biases [L] for the original features."""
        bias = b - w @ self.mean
        for part in reversed(self.axes):
            w = w @ part.T
        return w, bias


def principal_axes(x: Features) -> PrincipalAxes:
    """Rotate features; dense ones must be centered."""
    items, width = x.shape
    if sp.issparse(x) or min(items, width) > MAX_ROTATED:
        stored: Any = x
        mean = np.asarray(stored.mean(axis=0), np.float32).ravel() if sp.issparse(x) else np.zeros(width, np.float32)
        squares: Any = stored.power(2).mean(axis=0) if sp.issparse(x) else np.einsum("ij,ij->j", x, x) / items
        return PrincipalAxes(x, (), mean, np.maximum(np.asarray(squares, np.float32).ravel() - mean**2, 0))
    wide = width > items
    values, vectors = scipy.linalg.eigh(
        (x @ x.T if wide else x.T @ x) / np.float32(items), driver="evd", check_finite=False
    )
    significant = np.flatnonzero(values > MIN_AXIS * max(float(values[-1]), 1e-12))[::-1]
    values, vectors = (
        np.maximum(values[significant], 0).astype(np.float32),
        np.ascontiguousarray(vectors[:, significant], np.float32),
    )
    none = np.zeros(len(significant), np.float32)
    if wide:  # the axes are x.T @ vectors / length; x along them needs no product
        length = np.sqrt(values * np.float32(items))
        return PrincipalAxes(vectors * length, (x.T, vectors / length), none, values)
    return PrincipalAxes(x @ vectors, (vectors,), none, values)


def log_odds(weights: Floats, targets: Floats) -> Floats:
    """Return the bias [L] that fits the known entries of each label, smoothed by one entry of the overall share."""
    yes, all_ = np.einsum("ij,ij->i", weights, targets, dtype=np.float64), weights.sum(axis=1, dtype=np.float64)
    pooled = (yes.sum() + 0.5) / (all_.sum() + 1.0)
    share = np.clip((yes + pooled) / (all_ + 1.0), 1e-6, 1 - 1e-6)
    return np.asarray(np.log(share / (1 - share)), np.float32)


def regularization_path(
    x: Rotated, weights: Floats, targets: Floats, c_values: Sequence[float], offset: Floats | None = None
) -> Path:
    """Yield coefficients [L, R] and biases [L] for each C, each warm-started from the last.

    c_values: from strong regularization (small C) to weak. A label whose entries all have one value gets zero weights
    and the bias of `log_odds`. offset [L, N]: logits that scores are added to; they include a bias, which stays fixed.
    """
    width = max(1, BLOCK // max(1, x.shape[0]))
    blocks = [slice(i, i + width) for i in range(0, len(weights), width)]
    offsets = [None if offset is None else offset[block] for block in blocks]
    pairs = zip(blocks, offsets, strict=True)
    paths = [_block_path(x, weights[block], targets[block], c_values, start) for block, start in pairs]
    for _ in c_values:
        solutions = [next(part) for part in paths]
        yield np.concatenate([w for w, _ in solutions]), np.concatenate([b for _, b in solutions])


@dataclass(frozen=True)
class LabelRows:
    """The items with a known entry of a label, and their features, centered and rotated."""

    items: npt.NDArray[np.intp]
    x: PrincipalAxes
    mean: Floats  # [D]


def label_rows(x: Floats, weights: Floats) -> list[LabelRows]:
    """Return the rows of each label for `regularization_path_by_label`, from features [N, D] and weights [L, N]."""
    rows = []
    for each in weights:
        items = np.flatnonzero(each)
        mean = x[items].mean(axis=0) if len(items) else np.zeros(x.shape[1], np.float32)
        off = x[items] - mean  # the unpenalized bias compensates for the mean
        rows.append(LabelRows(items, principal_axes(off) if len(items) else PrincipalAxes(off, (), mean, mean), mean))
    return rows


def regularization_path_by_label(
    x: Sequence[LabelRows], weights: Floats, targets: Floats, seen: npt.NDArray[np.bool_], c_values: Sequence[float]
) -> Path:
    """Solve K subsets of the items, seen [K, N], with each label on its own rows: [K L, D] and [K L].

    This is faster if a label has fewer entries than half of the features. x: the result of `label_rows`.
    """
    paths = [_label_path(x[j], weights[j], targets[j], seen, c_values) for j in range(len(weights))]
    for _ in c_values:
        w, b = (np.stack(found, axis=1) for found in zip(*(next(part) for part in paths), strict=True))
        yield w.reshape(-1, w.shape[2]), b.reshape(-1)


def _label_path(
    rows: LabelRows, weights: Floats, targets: Floats, seen: npt.NDArray[np.bool_], c_values: Sequence[float]
) -> Path:
    """Yield coefficients [K, D] and biases [K] of one label."""
    fold_weights = weights[rows.items] * seen[:, rows.items]
    for found in regularization_path(rows.x, fold_weights, np.tile(targets[rows.items], (len(seen), 1)), c_values):
        w, b = rows.x.to_original(*found)
        yield w, b - w @ rows.mean


def minimum(
    x: Rotated, weights: Floats, targets: Floats, c: float, start: tuple[Floats, Floats] | None, tolerance: float
) -> tuple[Floats, Floats]:
    """Return coefficients [L, R] and biases [L] for one C, from a start (of such) to a tolerance like `TOLERANCE`."""
    w, b = np.zeros((len(weights), x.shape[1]), np.float32), log_odds(weights, targets)
    open_ = labels_with_both(weights, targets)
    if len(open_):
        solver = _Solver(x.keep(open_), weights[open_], targets[open_], b[open_], None, tolerance)
        if start is not None:
            solver.start(start[0][open_], start[1][open_])
        solver.minimize(c)
        w[open_], b[open_] = solver.w, solver.b
    return w, b


def labels_with_both(weights: Floats, targets: Floats) -> npt.NDArray[np.intp]:
    """Return the labels whose entries have both values."""
    yes = np.einsum("ij,ij->i", weights, targets, dtype=np.float64)
    return np.flatnonzero((yes > 1e-6) & (weights.sum(axis=1, dtype=np.float64) - yes > 1e-6))


def _block_path(x: Rotated, weights: Floats, targets: Floats, c_values: Sequence[float], offset: Floats | None) -> Path:
    w, b = np.zeros((len(weights), x.shape[1]), np.float32), log_odds(weights, targets)
    if offset is not None:
        b = np.zeros_like(b)
    open_ = labels_with_both(weights, targets)
    solver = _Solver(x, weights[open_], targets[open_], b[open_], None if offset is None else offset[open_])
    for c in c_values:
        solver.minimize(c)
        w[open_], b[open_] = solver.w, solver.b
        yield w.copy(), b.copy()


class _Solver:
    """Batched L-BFGS. `live` are the labels that have not converged; arrays have a row per label."""

    def __init__(
        self,
        x: Rotated,
        weights: Floats,
        targets: Floats,
        b: Floats,
        offset: Floats | None,
        tolerance: float | None = None,
    ) -> None:
        self.x, self.free = x, offset is None
        self.weights, self.yes = weights, weights * targets
        self.w, self.b = np.zeros((len(weights), x.shape[1]), np.float32), b
        self.logits = np.repeat(b[:, None], x.shape[0], axis=1) if offset is None else offset.astype(np.float32)
        constant = weights * (np.logaddexp(0, self.logits) - targets * self.logits)
        self.enough = np.float32(tolerance or TOLERANCE) * constant.sum(axis=1)

    def start(self, w: Floats, b: Floats) -> None:
        self.w, self.b = w, b
        self.logits = self.x.times(w) + b[:, None]

    def minimize(self, c: float) -> None:
        x, live, ridge = self.x, np.arange(len(self.w)), np.float32(1.0 / c)
        weights, yes, f, w, b = self.weights, self.yes, self.logits.copy(), self.w, self.b
        p = sigmoid(f)
        gw, gb = self._slopes(x, weights * p - yes, w, ridge)
        information = np.einsum("ij,ij,ij->i", weights, p, 1 - p)
        guess = 1.0 / (information[:, None] * self.x.squares + ridge), 1.0 / np.maximum(information, 1e-6)
        past: list[Pair] = []
        for step in range(ITERATIONS):
            dw, db = _direction(past, gw, gb, *guess)
            promised = -(_dot(gw, dw) + gb * db)
            done = promised * 0.5 <= self.enough[live]
            if done.any() and (done.mean() > 0.3 or step == 0):  # copying the rest has a cost too
                self._keep(live, w, b, f)
                left = ~done
                x, (live, weights, yes, f, w, b) = x.keep(left), (part[left] for part in (live, weights, yes, f, w, b))
                gw, gb, dw, db, promised = (part[left] for part in (gw, gb, dw, db, promised))
                guess = guess[0][left], guess[1][left]
                past = [_rows(pair, left) for pair in past]
                if not len(live):
                    return
            along = x.times(dw) + db[:, None]
            length, residual = _line_search(
                weights, yes, f, along, ridge * _dot(w, dw), ridge * _dot(dw, dw), -promised
            )
            f += length[:, None] * along
            sw, sb = length[:, None] * dw, length * db
            w, b = w + sw, b + sb
            new = self._slopes(x, residual, w, ridge)
            yw, yb = new[0] - gw, new[1] - gb
            gw, gb = new
            curved = _dot(sw, yw) + sb * yb
            past = [*past, (sw, sb, yw, yb, _inverse(curved))][-MEMORY:]
        self._keep(live, w, b, f)

    def _slopes(self, x: Rotated, residual: Floats, w: Floats, ridge: np.float32) -> tuple[Floats, Floats]:
        return x.slopes(residual) + ridge * w, residual.sum(axis=1) * np.float32(self.free)

    def _keep(self, live: npt.NDArray[np.intp], w: Floats, b: Floats, f: Floats) -> None:
        self.w[live], self.b[live], self.logits[live] = w, b, f


def _rows(pair: Pair, left: npt.NDArray[np.bool_]) -> Pair:
    sw, sb, yw, yb, rho = (part[left] for part in pair)
    return sw, sb, yw, yb, rho


def _direction(
    past: Sequence[Pair], gw: Floats, gb: Floats, guess: Floats, guess_of_bias: Floats
) -> tuple[Floats, Floats]:
    """Return minus the approximate inverse Hessian times the gradient: the two-loop recursion."""
    qw, qb = gw.copy(), gb.copy()
    alphas = []
    for sw, sb, yw, yb, rho in reversed(past):
        alpha = rho * (_dot(sw, qw) + sb * qb)
        qw -= alpha[:, None] * yw
        qb -= alpha * yb
        alphas.append(alpha)
    qw *= guess
    qb *= guess_of_bias
    for (sw, sb, yw, yb, rho), alpha in zip(past, reversed(alphas), strict=True):
        beta = alpha - rho * (_dot(yw, qw) + yb * qb)
        qw += beta[:, None] * sw
        qb += beta * sb
    return -qw, -qb


def _line_search(
    weights: Floats, yes: Floats, f: Floats, along: Floats, linear: Floats, quadratic: Floats, slope: Floats
) -> tuple[Floats, Floats]:
    """Return the step [L] along f + step * along, and the residuals there [L, N].

    The loss is convex along the line, so the sign of its slope brackets the minimum, and secants within the bracket
    suffice. slope [L], negative, is that at the start; that of the penalty is linear + step * quadratic.
    """

    def at(rows: Any, length: Floats) -> tuple[Floats, Floats]:
        left = weights[rows] * sigmoid(f[rows] + length[:, None] * along[rows]) - yes[rows]
        return left, _dot(left, along[rows]) + linear[rows] + length * quadratic[rows]

    length = np.ones(len(f), np.float32)
    low, high = np.zeros(len(f), np.float32), np.full(len(f), np.inf, np.float32)
    low_slope, high_slope = slope.copy(), high.copy()
    residual, now = at(slice(None), length)
    for _ in range(MAX_TRIALS):
        bad = np.flatnonzero(np.abs(now) > MIN_SLOPE_SHARE * np.abs(slope))
        if not len(bad):
            break
        short, far = bad[now[bad] < 0], bad[now[bad] >= 0]
        low[short], low_slope[short] = length[short], now[short]
        high[far], high_slope[far] = length[far], now[far]
        onward = length[bad] * np.clip(slope[bad] / np.minimum(slope[bad] - now[bad], -1e-12), 1.5, 4.0)
        with np.errstate(invalid="ignore"):
            share = np.clip(-low_slope[bad] / (high_slope[bad] - low_slope[bad]), 0.1, 0.9)
            between = low[bad] + share * (high[bad] - low[bad])
        length[bad] = np.where(np.isfinite(high[bad]), between, onward)
        residual[bad], now[bad] = at(bad, length[bad])
    return length, residual


def sigmoid(f: Floats) -> Floats:
    with np.errstate(over="ignore"):
        e = np.exp(-f)
    e += 1.0
    result: Floats = np.reciprocal(e, out=e)
    return result


def _dot(a: Floats, b: Floats) -> Floats:
    product: Floats = np.einsum("ij,ij->i", a, b)
    return product


def _inverse(a: Floats) -> Floats:
    """Return 1 / a, or 0 where a is not positive: such a step carries no curvature information."""
    good = a > 1e-12
    return np.where(good, 1.0 / np.where(good, a, 1.0), 0.0).astype(np.float32)
