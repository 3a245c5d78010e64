"""Choose how far a method moves away from its solved start: the learning rate and the number of epochs.

Every candidate is trained without a fold of the items, from the start that is solved without that fold. It is scored on
the observed entries of the fold, by the criterion that fits the known labels. The start is a candidate, too: a method
leaves it only if the score on held-out entries improves by more than its standard error.
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
from partly.engine.resolution import KNOWN_LABEL_HEADS
from partly.errors import DataError, Diverged
from partly.items import Items
from partly.items.prepared import PreparedItems
from partly.labels import Labels
from partly.method import Method, Task
from partly.networks import Network
from partly.networks.backbones import Backbone
from partly.pool import Pool
from partly.solvers.start import Baseline

PATIENCE = 2  # epochs without a better score
MIN_GAIN = 1.0  # over the start, in standard errors: the one-standard-error rule of Breiman et al. (CART, 1984)
GROUPS = 10  # of items, for the standard error
MIN_YES = 10 * GROUPS  # held out: with fewer than ten for each group, the standard error is no guide
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Steps:
    """Chosen learning rate and epochs, with the held-out scores of the result and of the start."""

    baseline: str
    lr_factor: float = 0.0  # 0: stay at the start
    epochs: int = 0  # to train; at most those of the schedule
    criterion: str = ""
    start_score: float | None = None
    score: float | None = None
    standard_error: float | None = None  # of the difference
    held_out_yes: int | None = None  # known yes among the scored entries
    reason: str = ""  # for staying at the start without a search

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
        """Return the notes to save with the model. reason: for the choice of the method."""
        text = self.describe(lr)
        return {"start": asdict(self) | {"text": text}, "reason": f"{reason}; {text}" if reason else text}


def choose_steps(plan: Plan, method: Method) -> tuple[Method, Steps]:
    """Build the method to train from its start, and choose its learning rate and epochs."""
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
        steps = replace(steps, held_out_yes=search.yes)
    if not steps.lr_factor:  # two networks are equal then: their mean is the baseline
        method = _build(plan, replace(task, start=replace(task.start, contrast=task.start.no_contrast)))
        for backbone in (part for part in method.modules() if isinstance(part, Backbone)):
            backbone.stop_learning()
        epochs = config.epochs if method.beliefs(slice(0, 0)) is not None else 1
        steps = replace(steps, epochs=epochs)
    method.lr_factor = steps.lr_factor
    return method, steps


def use_start_features(task: Task, items: Items) -> Items:
    """Return the items with precomputed features of their start, if these are fixed and fit into memory."""
    start = task.start
    fixed = start is not None and start.baseline is not None and start.body is None
    features = start.baseline.all_features if start is not None and fixed else None
    return items if features is None else PreparedItems.of(items, features)


def _build(plan: Plan, task: Task) -> Method:
    return methods.find(plan.config.method).build(task, plan.config.settings)


class StepSearch:
    """A search over learning rates and epochs, on folds of the training items of a plan."""

    def __init__(self, plan: Plan, task: Task, baseline: Baseline) -> None:
        self.plan, self.task, self.baseline = plan, task, baseline
        self.folds = range(baseline.search_folds)
        self.rows = np.flatnonzero(baseline.fold < baseline.search_folds)  # items that a search fold holds out
        self.labels: Labels = plan.labels[self.rows]
        self.criterion = model_choice.default(self.labels)
        self.yes = int(self.labels.counts()[0].sum())
        self.stops_early = plan.config.head not in KNOWN_LABEL_HEADS  # a transformer improves late

    def search(self, factors: Sequence[float]) -> Steps:
        """Return the best steps, or none if they do not improve on the start.

        Factors of the learning rate are tried from the middle: larger ones while the score improves, else smaller ones.
        """
        start = self.baseline.out_of_fold().numpy()[self.rows]
        first = best = self._score(start)
        chosen, scores, position = (0.0, 0), start, len(factors) // 2
        direction = 0
        while 0 <= position < len(factors):
            before = best
            for epoch, candidate in self._candidates(factors[position], first):
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
        all_but_group = [np.flatnonzero(group != k) for k in range(groups)]
        pairs = [(self._score(scores, rows), self._score(start, rows)) for rows in all_but_group]
        gaps = np.array([a - b for a, b in pairs if math.isfinite(a) and math.isfinite(b)])
        return float(np.sqrt((len(gaps) - 1) * gaps.var())) if len(gaps) > 1 else math.inf

    def _candidates(self, factor: float, first: float) -> Iterator[tuple[int, Scores]]:
        """Yield out-of-fold scores after each epoch that may be chosen.

        Stop after `PATIENCE` epochs without a better score than `first` (the start) and all epochs before."""
        runs = [self._run(factor, fold) for fold in self.folds]
        best, epochs_behind = first, 0
        for epoch in range(1, self.plan.config.epochs + 1):
            try:
                fold_results = [next(run) for run in runs]
            except (DataError, Diverged):
                return
            out_of_fold = np.empty(self.plan.labels.shape, np.float32)
            for fold, (scores, _) in zip(self.folds, fold_results, strict=True):
                out_of_fold[self.baseline.fold == fold] = scores
            score = self._score(out_of_fold[self.rows])
            epochs_behind, best = (0, score) if score > best else (epochs_behind + 1, best)
            if all(may_be_best for _, may_be_best in fold_results):
                yield epoch, out_of_fold[self.rows]
            if epochs_behind == PATIENCE and self.stops_early:
                return

    def _run(self, factor: float, fold: int) -> Iterator[tuple[Scores, bool]]:
        """Train without a fold; yield its logits after each epoch, and whether the epoch may be chosen."""
        plan, seed = self.plan, self.plan.config.seed
        rows, held_out = (np.flatnonzero(part) for part in (self.baseline.fold != fold, self.baseline.fold == fold))
        labels, weights = plan.labels[rows], None if plan.weights is None else plan.weights[rows]
        start, items = self.baseline.start_without(fold), self.task.items[rows]
        prior = None if self.task.prior is None else self.task.prior.take(rows)
        task = replace(self.task, items=items, observed=labels, weights=weights, start=start, prior=prior)
        method = _build(plan, task)
        method.lr_factor = factor
        features = use_start_features(self.task, plan.items)
        pool = Pool(features[rows], labels, plan.config.batch_size, weights=weights)
        clock = Clock(seed, plan.config.epochs, method.steps(pool), last=pool.last)
        for _ in range(clock.epochs):
            for _ in training.run_epoch(method, pool, clock):
                pass
            may_be_best = method.may_be_best(clock)
            clock.next_epoch()
            yield _score_held_out(method, features[held_out], plan.labels[held_out], seed), may_be_best


def _score_held_out(method: Method, items: Items, labels: Labels, seed: int) -> Scores:
    """Return logits of held-out items [N, L].

    A head that takes known labels is judged by both of its uses: half of the entries, drawn at random, are scored with
    the other half of the known labels given, and the other half of the entries without any.
    """
    scores = logits(method, items)
    if not any(network.takes_labels for network in method.modules() if isinstance(network, Network)):
        return scores
    shown_mask = np.random.default_rng(seed).random(labels.shape) < 0.5
    known = Labels.from_ternary(np.where(shown_mask, labels.rows(slice(None)), 0).astype(np.int8))
    return np.where(shown_mask, scores, logits(method, items, known=known))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
