"""Choose how far a method moves away from its solved start: the learning rate and the number of epochs.

Every candidate is trained without a fold of the items, from the start that is solved without that fold, and judged on
the observed entries of the fold by the criterion that fits what is known. The start is a candidate: a method leaves it
only where the held-out entries say so, by more than their noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import model_choice
from partly.clock import Clock
from partly.engine import training
from partly.errors import DataError, Diverged
from partly.items.prepared import PreparedItems
from partly.labels import Labels
from partly.labels.weights import Weights
from partly.method import Method, Task
from partly.pool import Pool
from partly.solvers.start import Baseline

FACTORS = (0.04, 0.2, 1.0)  # of the learning rate: from the middle, up where that helps, else down
MAX_HELD_OUT = 2000  # items, about: more folds are not needed
PATIENCE = 2  # epochs without a better score
MIN_GAIN = 1.0  # over the start, in standard errors
GROUPS = 10  # of items, for the standard error
Scores = npt.NDArray[np.float32]
Build = Callable[[Task], Method]


@dataclass(frozen=True)
class Steps:
    """The chosen steps, and what they are worth on held-out entries."""

    baseline: str
    factor: float  # of the learning rate; 0: the start is kept
    epochs: int  # to train, of those of the schedule
    criterion: str
    start_score: float
    score: float  # of what was chosen
    standard_error: float  # of the difference
    reason: str = ""  # for keeping the start without a search

    def describe(self, lr: float) -> str:
        """Return one line for the console and the report."""
        if self.reason:
            return f"stays at the solved {self.baseline}: {self.reason}"
        if not self.factor:
            return f"stays at the solved {self.baseline}: no step improves {self.criterion} on held-out entries"
        gain = f"{self.score - self.start_score:+.4f} ± {self.standard_error:.4f}"
        return (
            f"starts at the solved {self.baseline} and adds {gain} held-out {self.criterion} in {self.epochs} epochs "
            f"at a learning rate of {self.factor * lr:.2g}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return what the history and the report keep."""
        values = asdict(self)
        return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in values.items()}


def keep_start(baseline: str, reason: str = "") -> Steps:
    """Return steps that change nothing."""
    return Steps(baseline, 0.0, 0, "", math.nan, math.nan, math.nan, reason)


class StepSearch:
    """A search over learning rates and epochs, on folds of the items of a task."""

    def __init__(
        self, build: Build, task: Task, baseline: Baseline, epochs: int, batch_size: int, weights: Weights | None = None
    ) -> None:
        assert task.observed is not None
        self.build, self.task, self.baseline, self.labels = build, task, baseline, task.observed
        self.epochs, self.batch_size, self.weights = epochs, batch_size, weights
        count = int(baseline.fold.max()) + 1
        used = min(count, -(-MAX_HELD_OUT * count // max(1, len(baseline.fold))))
        self.folds = range(used)
        self.held_out = np.flatnonzero(baseline.fold < used)
        self.judged: Labels = self.labels[self.held_out]
        self.criterion = model_choice.default(self.judged)

    def search(self, factors: tuple[float, ...] = FACTORS) -> Steps:
        """Return the best steps, or none where the start is as good."""
        start = self.baseline.out_of_fold().numpy()[self.held_out]
        first = self._score(start)
        best, chosen, scores = first, (0.0, 0), start
        middle = len(factors) // 2
        tried, step = middle, 0
        while 0 <= tried < len(factors):
            for epoch, candidate in self._candidates(factors[tried]):
                score = self._score(candidate)
                if score > best:
                    best, chosen, scores = score, (factors[tried], epoch), candidate
            step = step or (1 if chosen[0] else -1)
            if chosen[0] != factors[tried] and tried != middle:
                break
            tried += step
        error = self._standard_error(scores, start)
        if not chosen[0] or not best - first > MIN_GAIN * error:
            return Steps(self.baseline.name, 0.0, 0, self.criterion, first, first, error)
        return Steps(self.baseline.name, *chosen, self.criterion, first, best, error)

    def _score(self, scores: Scores, rows: npt.NDArray[np.intp] | slice = slice(None)) -> float:
        value = model_choice.score(self.criterion, scores[rows], self.judged[rows])
        return value if math.isfinite(value) else -math.inf

    def _standard_error(self, scores: Scores, start: Scores) -> float:
        """Of the difference of two scores: the jackknife over groups of items."""
        group = np.random.default_rng(0).permutation(np.arange(len(scores)) % GROUPS)
        kept = [np.flatnonzero(group != k) for k in range(GROUPS)]
        with np.errstate(invalid="ignore"):
            gaps = np.array([self._score(scores, rows) - self._score(start, rows) for rows in kept])
        gaps = gaps[np.isfinite(gaps)]
        return float(np.sqrt((len(gaps) - 1) * gaps.var())) if len(gaps) > 1 else math.inf

    def _candidates(self, factor: float) -> Iterator[tuple[int, Scores]]:
        """Out-of-fold scores after each epoch that may be chosen, until they no longer improve."""
        runs = [self._run(factor, fold) for fold in self.folds]
        best, behind = -math.inf, 0
        for epoch in range(1, self.epochs + 1):
            try:
                parts = [next(run) for run in runs]
            except (DataError, Diverged):
                return
            scores = np.empty((len(self.baseline.fold), self.task.labels), np.float32)
            for fold, (logits, _) in zip(self.folds, parts, strict=True):
                scores[self.baseline.fold == fold] = logits
            score = self._score(scores[self.held_out])
            behind, best = (0, score) if score > best else (behind + 1, best)
            if all(may_be_best for _, may_be_best in parts):
                yield epoch, scores[self.held_out]
            if behind == PATIENCE:
                return

    def _run(self, factor: float, fold: int) -> Iterator[tuple[Scores, bool]]:
        """Train without a fold; after each epoch its logits of the fold, and whether the epoch may be chosen."""
        seen, rest = np.flatnonzero(self.baseline.fold != fold), np.flatnonzero(self.baseline.fold == fold)
        task, labels = self.task, self.labels[seen]
        weights = None if self.weights is None else self.weights[seen]
        start = self.baseline.start_without(fold)
        method = self.build(
            replace(task, items=task.items[seen], observed=labels, weights=weights, start=start, lr=factor * task.lr)
        )
        items = prepare(self.baseline, task.items)
        pool = Pool(items[seen], labels, self.batch_size, weights=weights)
        clock = Clock(task.seed, self.epochs, method.steps(pool), last=pool.last)
        for _ in range(self.epochs):
            for _ in training.run_epoch(method, pool, clock):
                pass
            yield training.logits(method, items[rest]), method.may_be_best(clock)
            clock.next_epoch()


def prepare(baseline: Baseline, items: Any) -> Any:
    """Return the items with the features of the baseline computed once, where they fit into memory."""
    return items if baseline.prepared is None else PreparedItems(items, baseline.prepared)
