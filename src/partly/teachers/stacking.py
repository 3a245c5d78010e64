"""Stacked logistic regression: weigh the model and its teachers on entries that the model has not seen.

    logit(item, label) = bias[label] + sum over inputs k of slope[k, label] * input[k](item, label)

The inputs are the model's out-of-fold logit and, for each teacher, its score standardized per label (`t`) and then per
item (`u`, see `standardization`). Slopes are fitted in two steps: one set for all labels (pooled), then one set per
label under a Gaussian prior around the pooled one. The precision of that prior is chosen by held-out log loss; an
infinite one keeps the pooled slopes. A label without known entries uses the pooled slopes.

Few known entries hardly separate a useful teacher from a misleading one. So the fit is averaged with the model alone,
both weighted by their posterior probabilities (Bayesian model averaging, Hoeting et al., Statistical Science 1999).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

PRECISIONS = (math.inf, 100.0, 30.0, 10.0)  # of the prior around the pooled slopes
MODEL_SLOPE, LABEL_SLOPE, ITEM_SLOPE = 0.8, 0.2, 0.7  # means of the prior of pooled slopes: model, t, u
POOLED_PRECISION = 10.0  # of that prior
PRIOR_LOG_ODDS = 1.5  # that teachers help
UNTESTED_TRUST, MIN_YES = 2.5, 5  # prior log odds with fewer than MIN_YES known yes, which hardly test a teacher
BIAS_PRECISION = 1.0  # of the prior of biases around their mean over labels
MAX_ENTRIES = 1 << 19  # above it, callers give those of random items
NEWTON_STEPS = 30
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Entries:
    """Weighted entries, sorted by label, with their inputs."""

    label: Index  # [E]
    item: Index  # [E]
    inputs: Floats  # [E, K]
    target: Floats  # [E], from 0 to 1
    weight: Floats  # [E]

    def __getitem__(self, chosen: npt.NDArray[Any]) -> Entries:
        return Entries(*(part[chosen] for part in (self.label, self.item, self.inputs, self.target, self.weight)))

    def __len__(self) -> int:
        return len(self.label)

    def with_inputs(self, columns: Sequence[int]) -> Entries:
        """Return the same entries with some of the inputs."""
        return replace(self, inputs=self.inputs[:, list(columns)])


@dataclass(frozen=True)
class Slopes:
    """Slopes [K, L] and biases [L] of all labels, the pooled slopes [K], and the precision that was chosen."""

    slopes: Floats
    bias: Floats
    pooled: Floats
    precision: float
    teachers: tuple[int, ...]  # with a weight
    evidence: float = math.nan  # log evidence of the pooled slopes
    posterior: float = 1.0  # probability that teachers help; the model alone has the rest of the weight

    def __call__(self, entries: Entries) -> Floats:
        """Return the logits of entries, [E]."""
        logits: Floats = np.einsum("ek,ke->e", entries.inputs, self.slopes[:, entries.label]) + self.bias[entries.label]
        return logits


def fit(entries: Entries, labels: int, teachers: int, seed: int = 0, folds: int = 5) -> Slopes:
    """Fit slopes and biases of the inputs (model, then two of each teacher).

    A teacher is left out, with slopes of exactly 0, if the evidence is against it. If all are left out, the model's
    logits are unchanged.
    """
    entries = _normalize(entries)
    chosen = choose_teachers(entries, labels, teachers)
    if not chosen:
        slopes = np.zeros(1 + 2 * teachers)
        slopes[0] = 1.0
        return Slopes(np.repeat(slopes[:, None], labels, axis=1), np.zeros(labels), slopes, math.inf, ())
    columns = _columns(chosen)
    part = entries.with_inputs(columns)
    losses = measure_held_out_losses(part, labels, seed, folds)
    best = min(losses, key=lambda precision: losses[precision])
    together = fit_pooled(part, labels)
    posterior = _posterior(together, entries, labels) if len(entries) else 1.0
    averaged = _average_with_model(fit_per_label(part, together, best), posterior)
    slopes, pooled = np.zeros((1 + 2 * teachers, labels)), np.zeros(1 + 2 * teachers)
    slopes[columns], pooled[columns] = averaged.slopes, averaged.pooled
    return Slopes(slopes, averaged.bias, pooled, best, chosen, posterior=posterior)


def refit(entries: Entries, labels: int, slopes: Slopes) -> Slopes:
    """Fit the slopes to other entries, with the same teachers and precision."""
    columns = _columns(slopes.teachers)
    part = _normalize(entries).with_inputs(columns)
    averaged = _average_with_model(fit_per_label(part, fit_pooled(part, labels), slopes.precision), slopes.posterior)
    new_slopes = np.zeros_like(slopes.slopes)
    new_slopes[columns] = averaged.slopes
    return replace(slopes, slopes=new_slopes, bias=averaged.bias)


def fit_shift(entries: Entries, labels: int) -> Floats:
    """Return the best bias of each label, [L], for logits (the only input) at slope 1."""
    entries = _normalize(entries)
    shift = np.zeros(labels)
    for _ in range(NEWTON_STEPS):
        residual, curvature = _derivatives(entries.inputs[:, 0] + shift[entries.label], entries)
        step = _sums(residual, entries.label, labels) + BIAS_PRECISION * (shift - shift.mean())
        step = step / (_sums(curvature, entries.label, labels) + BIAS_PRECISION)
        shift = shift - _clip_to_bounds(step)
        if np.abs(step).max(initial=0.0) < TOLERANCE:
            break
    return shift


def choose_teachers(entries: Entries, labels: int, teachers: int) -> tuple[int, ...]:
    """Return the teachers to use: backward elimination by the Laplace evidence of the pooled regression.

    A teacher stays unless leaving it out raises the log evidence by more than its prior log odds.
    A teacher whose total slope is not positive is left out.
    """
    chosen = tuple(range(teachers))
    trust = _prior_log_odds(entries) / max(1, teachers)
    while chosen:
        with_all = fit_pooled(entries.with_inputs(_columns(chosen)), labels)
        without = {
            k: fit_pooled(entries.with_inputs(_columns([j for j in chosen if j != k])), labels).evidence for k in chosen
        }
        against = [k for place, k in enumerate(chosen) if with_all.pooled[1 + 2 * place : 3 + 2 * place].sum() <= 0]
        worst = max(against or chosen, key=lambda k: without[k])
        if not against and without[worst] - with_all.evidence <= trust:
            break
        chosen = tuple(k for k in chosen if k != worst)
    return chosen


def measure_held_out_losses(entries: Entries, labels: int, seed: int = 0, folds: int = 5) -> dict[float, float]:
    """Return the total log loss of held-out items for each precision."""
    fold_of_item = np.random.default_rng(seed).permutation(int(entries.item.max(initial=-1)) + 1) % folds
    fold = fold_of_item[entries.item]
    totals = dict.fromkeys(PRECISIONS, 0.0)
    for k in range(folds):
        training, held_out = entries[fold != k], entries[fold == k]
        pooled = fit_pooled(training, labels)
        for precision in PRECISIONS:
            model = fit_per_label(training, pooled, precision)
            totals[precision] += float(held_out.weight @ log_loss(model(held_out), held_out.target))
    return totals


def fit_pooled(entries: Entries, labels: int) -> Slopes:
    """Fit one set of slopes for all labels, and a bias for each, by Newton's method."""
    prior = _prior(entries.inputs.shape[1])
    slopes, center = prior.copy(), _log_odds(entries)
    bias = np.full(labels, center)
    for _ in range(NEWTON_STEPS):
        residual, curvature = _derivatives(entries.inputs @ slopes + bias[entries.label], entries)
        g_slopes = entries.inputs.T @ residual + POOLED_PRECISION * (slopes - prior)
        g_bias = _sums(residual, entries.label, labels) + BIAS_PRECISION * (bias - center)
        h_bias = _sums(curvature, entries.label, labels) + BIAS_PRECISION
        mixed = np.stack([_sums(curvature * column, entries.label, labels) for column in entries.inputs.T])  # [K, L]
        h_slopes = (entries.inputs * curvature[:, None]).T @ entries.inputs + POOLED_PRECISION * np.eye(len(slopes))
        # Biases are eliminated: their block of the Hessian is diagonal.
        reduced = h_slopes - (mixed / h_bias) @ mixed.T
        step = np.linalg.solve(reduced, g_slopes - mixed @ (g_bias / h_bias))
        bias_step = (g_bias - step @ mixed) / h_bias
        slopes, bias = slopes - _clip_to_bounds(step), bias - _clip_to_bounds(bias_step)
        if max(np.abs(step).max(initial=0.0), np.abs(bias_step).max(initial=0.0)) < TOLERANCE:
            break
    loss = float(entries.weight @ log_loss(entries.inputs @ slopes + bias[entries.label], entries.target))
    loss += 0.5 * POOLED_PRECISION * float(np.square(slopes - prior).sum())
    loss += 0.5 * BIAS_PRECISION * float(np.square(bias - center).sum())
    volume = np.linalg.slogdet(reduced / POOLED_PRECISION)[1] + np.log(h_bias / BIAS_PRECISION).sum()
    evidence = -loss - 0.5 * float(volume)
    return Slopes(np.repeat(slopes[:, None], labels, axis=1), bias, slopes, math.inf, (), evidence)


def fit_per_label(entries: Entries, pooled: Slopes, precision: float) -> Slopes:
    """Fit slopes and bias of each label, with a Gaussian prior of this precision around the pooled slopes."""
    if math.isinf(precision):
        return pooled
    labels = pooled.bias.size
    inputs = np.concatenate([entries.inputs, np.ones((len(entries), 1))], axis=1)  # the last slope is the bias
    start = np.concatenate([pooled.slopes, np.full((1, labels), pooled.bias.mean())])  # [K + 1, L]
    size = len(start)
    prior = np.array([precision] * (size - 1) + [BIAS_PRECISION])
    theta = np.concatenate([pooled.slopes, pooled.bias[None]])
    for _ in range(NEWTON_STEPS):
        logits = np.einsum("ek,ke->e", inputs, theta[:, entries.label])
        residual, curvature = _derivatives(logits, entries)
        gradient = np.stack([_sums(residual * column, entries.label, labels) for column in inputs.T])  # [K + 1, L]
        gradient += prior[:, None] * (theta - start)
        hessian = np.empty((labels, size, size))
        for a in range(size):
            for b in range(a + 1):
                block = _sums(curvature * inputs[:, a] * inputs[:, b], entries.label, labels)
                hessian[:, a, b] = hessian[:, b, a] = block
        hessian += np.diag(prior)
        step = np.linalg.solve(hessian, gradient.T[..., None])[..., 0].T
        theta = theta - _clip_to_bounds(step)
        if float(np.abs(step).max(initial=0.0)) < TOLERANCE:
            break
    return Slopes(theta[:-1], theta[-1], pooled.pooled, precision, ())


def entries_of(inputs: Sequence[npt.NDArray[Any]], weights: npt.NDArray[Any], targets: npt.NDArray[Any]) -> Entries:
    """Collect the entries of positive weight from arrays [L, N]."""
    label, item = np.nonzero(weights)
    columns = np.stack([part[label, item] for part in inputs], axis=1).astype(np.float64)
    return Entries(label, item, columns, targets[label, item].astype(float), weights[label, item].astype(float))


def log_loss(logits: npt.NDArray[Any], target: npt.NDArray[Any]) -> Floats:
    """Return the binary cross-entropy of logits, elementwise."""
    loss: Floats = np.logaddexp(0.0, logits) - target * logits
    return loss


def _columns(teachers: Sequence[int]) -> list[int]:
    """Return the input columns of the model and of these teachers."""
    return [0, *(column for k in teachers for column in (1 + 2 * k, 2 + 2 * k))]


def _prior_log_odds(entries: Entries) -> float:
    """Return the prior log odds that teachers help."""
    return PRIOR_LOG_ODDS if (entries.target > 0.5).sum() >= MIN_YES else UNTESTED_TRUST


def _posterior(together: Slopes, entries: Entries, labels: int) -> float:
    """Return the posterior probability that teachers help, from the evidence with and without them."""
    alone = fit_pooled(entries.with_inputs([0]), labels)
    return 1 / (1 + math.exp(min(50.0, alone.evidence - together.evidence - _prior_log_odds(entries))))


def _average_with_model(fitted: Slopes, posterior: float) -> Slopes:
    """Average a fit with the model alone (slope 1, no bias), by the posterior probability of the fit."""
    alone = np.zeros(len(fitted.pooled))
    alone[0] = 1.0
    slopes = posterior * fitted.slopes + (1 - posterior) * alone[:, None]
    pooled = posterior * fitted.pooled + (1 - posterior) * alone
    return replace(fitted, slopes=slopes, bias=posterior * fitted.bias, pooled=pooled)


def _prior(inputs: int) -> Floats:
    """Return the prior means of pooled slopes; several teachers share the prior slope of one."""
    teachers = max(1, inputs // 2)
    return np.array(
        [MODEL_SLOPE if inputs > 1 else 1.0] + [LABEL_SLOPE / teachers, ITEM_SLOPE / teachers] * (inputs // 2)
    )


def _normalize(entries: Entries) -> Entries:
    """Scale the weights to mean 1, since only their ratios are meaningful."""
    mean = float(entries.weight.mean()) if len(entries) else 1.0
    return replace(entries, weight=entries.weight / mean)


def _derivatives(logits: Floats, entries: Entries) -> tuple[Floats, Floats]:
    p = 1 / (1 + np.exp(-np.clip(logits, -60, 60)))
    return entries.weight * (p - entries.target), entries.weight * p * (1 - p)


def _sums(values: Floats, label: Index, labels: int) -> Floats:
    return np.bincount(label, values, labels).astype(np.float64, copy=False)


def _clip_to_bounds(step: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Limit a Newton step: far from the optimum the quadratic model overshoots."""
    bounded: npt.NDArray[Any] = np.clip(step, -2.0, 2.0)
    return bounded


def _log_odds(entries: Entries) -> float:
    yes, total = float(entries.weight @ entries.target), float(entries.weight.sum())
    return math.log((yes + 0.5) / (total - yes + 0.5))
