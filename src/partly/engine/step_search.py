"""Choose how far a method moves away from its solved start: the learning rate and the number of epochs.

Every candidate is trained without a fold of the items, from the start that is solved without that fold, and scored on
the observed entries of the fold by the criterion that fits what is known. The start is a candidate: a method leaves it
only where the held-out entries say so by more than their noise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import methods, model_choice
from partly.clock import Clock
from partly.engine import training
from partly.engine.plan import Plan
from partly.engine.prediction import logits
from partly.errors import DataError, Diverged
from partly.items import Items
from partly.items.prepared import PreparedItems
from partly.labels import Labels
from partly.method import Method, Task
from partly.pool import Pool
from partly.solvers.start import Baseline

MAX_HELD_OUT = 2000  # items, about: more folds are not needed
PATIENCE = 2  # epochs without a better score
MIN_GAIN = 1.0  # over the start, in standard errors
MIN_YES = 100  # held out: with fewer, the standard error is no guide
GROUPS = 10  # of items, for the standard error
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Steps:
    """The chosen steps, and their score on held-out entries beside that of the start."""

    baseline: str
    lr_factor: float = 0.0  # 0: the start is kept
    epochs: int = 0  # to train, of those of the schedule
    criterion: str = ""
    start_score: float | None = None
    score: float | None = None
    standard_error: float | None = None  # of the difference
    reason: str = ""  # for keeping the start without a search

    def describe(self, lr: float) -> str:
        """Return one line for the console and the report."""
        if not self.lr_factor:
            reason = self.reason or f"no step improves {self.criterion} on held-out entries"
            return f"stays at its start, the solved {self.baseline}: {reason}"
        gain = (self.score or 0.0) - (self.start_score or 0.0)
        return (
            f"starts at the solved {self.baseline} and improves {self.criterion} on held-out entries by "
            f"{gain:.4f} ± {self.standard_error:.4f} "
            f"({self.epochs} epochs, learning rate {self.lr_factor * lr:.2g})"
        )

    def notes(self, lr: float, reason: str) -> dict[str, Any]:
        """Return what the model keeps of them. reason: for the chosen method."""
        text = self.describe(lr)
        return {"start": asdict(self) | {"text": text}, "reason": f"{reason}; {text}" if reason else text}


def choose_steps(plan: Plan, method: Method) -> tuple[Method, Steps]:
    """Return the method as it is to be trained, from its start, and the steps to take."""
    task, config = method.task, plan.config
    assert task.start is not None
    baseline: Baseline = task.start.baseline
    unmet = methods.find(config.method).unmet_need(plan.labels, config.settings)
    if unmet:
        steps = Steps(baseline.name, reason=unmet)
        warnings.warn(
            f"{config.method} {steps.describe(config.lr)}. Choose a method that learns from it.", stacklevel=3
        )
    else:
        search = StepSearch(plan, task, baseline)
        few = f"only {search.yes} held-out entries are known to be yes" if search.yes < MIN_YES else ""
        steps = Steps(baseline.name, reason=few) if few else search.search(config.lr_factors)
    if not steps.lr_factor:  # two networks are equal then: their mean is the baseline
        method = _build(plan, replace(task, start=replace(task.start, contrast=task.start.no_contrast)))
        epochs = config.epochs if method.beliefs(slice(0, 0)) is not None else 1
        steps = replace(steps, epochs=epochs)
    method.lr_factor = steps.lr_factor
    return method, steps


def prepared(task: Task, items: Items) -> Items:
    """Return the items with the fixed features of their start computed once, where these fit into memory."""
    start = task.start
    features = None if start is None or start.baseline is None else start.baseline.prepared
    return items if features is None else PreparedItems.of(items, features)


def _build(plan: Plan, task: Task) -> Method:
    return methods.find(plan.config.method).build(task, plan.config.settings)


class StepSearch:
    """A search over learning rates and epochs, on folds of the training items of a plan."""

    def __init__(self, plan: Plan, task: Task, baseline: Baseline) -> None:
        self.plan, self.task, self.baseline = plan, task, baseline
        fold = baseline.fold
        count = int(fold.max()) + 1
        self.folds = range(min(count, -(-MAX_HELD_OUT * count // max(1, len(fold)))))
        self.rows = np.flatnonzero(fold < len(self.folds))  # held out by one of them
        self.labels: Labels = plan.labels[self.rows]
        self.criterion = model_choice.default(self.labels)
        self.yes = int(self.labels.counts()[0].sum())

    def search(self, factors: Sequence[float]) -> Steps:
        """Return the best steps, or none where they are not better than the start.

        Factors of the learning rate are tried from the middle one: larger ones while they improve, else smaller ones.
        """
        start = self.baseline.out_of_fold().numpy()[self.rows]
        first = best = self._score(start)
        chosen, scores, position = (0.0, 0), start, len(factors) // 2
        direction = 0
        while 0 <= position < len(factors):
            before = best
            for epoch, candidate in self._candidates(factors[position]):
                score = self._score(candidate)
                if score > best:
                    best, chosen, scores = score, (factors[position], epoch), candidate
            if direction and best == before:
                break
            direction = direction or (1 if best > before else -1)
            position += direction
        error = self._standard_error(scores, start) if chosen[0] else 0.0
        steps = Steps(self.baseline.name, 0.0, 0, self.criterion, _finite(first), _finite(first), _finite(error))
        if best - first > MIN_GAIN * error:
            steps = replace(steps, lr_factor=chosen[0], epochs=chosen[1], score=best)
        return steps

    def _score(self, scores: Scores, rows: npt.NDArray[np.intp] | slice = slice(None)) -> float:
        value = model_choice.score(self.criterion, scores[rows], self.labels[rows])
        return value if math.isfinite(value) else -math.inf

    def _standard_error(self, scores: Scores, start: Scores) -> float:
        """Return the standard error of the difference of two scores: a jackknife over groups of items."""
        groups = min(GROUPS, len(scores))
        group = np.random.default_rng(0).permutation(np.arange(len(scores)) % groups)
        parts = [np.flatnonzero(group != k) for k in range(groups)]
        pairs = [(self._score(scores, rows), self._score(start, rows)) for rows in parts]
        gaps = np.array([a - b for a, b in pairs if math.isfinite(a) and math.isfinite(b)])
        return float(np.sqrt((len(gaps) - 1) * gaps.var())) if len(gaps) > 1 else math.inf

    def _candidates(self, factor: float) -> Iterator[tuple[int, Scores]]:
        """Yield out-of-fold scores after each epoch that may be chosen, until they no longer improve."""
        runs = [self._run(factor, fold) for fold in self.folds]
        best, behind = -math.inf, 0
        for epoch in range(1, self.plan.config.epochs + 1):
            try:
                parts = [next(run) for run in runs]
            except (DataError, Diverged):
                return
            every = np.empty(self.plan.labels.shape, np.float32)
            for fold, (scores, _) in zip(self.folds, parts, strict=True):
                every[self.baseline.fold == fold] = scores
            score = self._score(every[self.rows])
            behind, best = (0, score) if score > best else (behind + 1, best)
            if all(may_be_best for _, may_be_best in parts):
                yield epoch, every[self.rows]
            if behind == PATIENCE:
                return

    def _run(self, factor: float, fold: int) -> Iterator[tuple[Scores, bool]]:
        """Train without a fold; yield its logits after each epoch, and whether the epoch may be chosen."""
        plan, seed = self.plan, self.plan.config.seed
        rows, held_out = (np.flatnonzero(part) for part in (self.baseline.fold != fold, self.baseline.fold == fold))
        labels, weights = plan.labels[rows], None if plan.weights is None else plan.weights[rows]
        start, items = self.baseline.start_without(fold), self.task.items[rows]
        method = _build(plan, replace(self.task, items=items, observed=labels, weights=weights, start=start))
        method.lr_factor = factor
        features = prepared(self.task, plan.items)
        pool = Pool(features[rows], labels, plan.config.batch_size, weights=weights)
        clock = Clock(seed, plan.config.epochs, method.steps(pool), last=pool.last)
        for _ in range(clock.epochs):
            for _ in training.run_epoch(method, pool, clock):
                pass
            may_be_best = method.may_be_best(clock)
            clock.next_epoch()
            yield logits(method, features[held_out]), may_be_best


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
