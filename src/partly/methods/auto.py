"""Portfolio of solved kernel machines and a forest, weighted by their held-out log loss.

When to use
    First, on features, whenever you do not want to choose a method. It also provides out-of-fold scores and thresholds.

Formula
    score(x) = sum over models k of w_k x_k;   w_k follows from the held-out log loss of model k

Reference
    None of its own. Nystroem features: Williams and Seeger, NIPS 2000. Extremely randomized trees: Geurts, Ernst and
    Wehenkel, Machine Learning 2006. Weights from held-out losses: in the spirit of Caruana et al., ICML 2004.

Known negatives
    Learned from as negatives; beliefs never contradict them.

Models, in the order of training
    1. Logistic regressions on the features, on a Gaussian kernel (both also at the scale of the input), and on a
       Laplace kernel of normal scores. They learn from known entries; without any known negative, unknown entries
       count as negatives. Cross-validation over items chooses C and yields out-of-fold scores.
    2. A forest for all labels. Its targets are the known entries, and the estimates of step 1 for unknown ones; with
       positives only, the mean of both. Its held-out loss comes from folds that its targets did not see.
    3. Relations between labels, and competition between the labels of an item, as far as the held-out loss falls.

    Weights follow the reduction of the held-out log loss. A model that fails is left out and reported. If the
    kernel machines together are clearly worse than plain logistic regression, only that is kept; if all models
    together are clearly worse than the kernel machines, only these are kept.

Differences from the paper
    Common practice selects one model on a validation set, which is noisy with few known entries. Here every model
    is weighted, on all folds. Methods from papers are not part of the portfolio.

Defaults
    Five minutes. `budget` sets another limit: minutes, "20x" for twenty times the duration of the first model, or
    "inf". A model that has started is finished. From 5,000 items on, models with a weight below 2 % are dropped, and
    the forest has half as many trees, which grow from at most 20,000 items.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.clock import Clock, seed_for
from partly.losses.terms import assume_negative, bce
from partly.method import EntryState, Task
from partly.pool import Pool
from partly.solvers.blending import relative_gains
from partly.solvers.calibration import calibrate, reweight_by_missingness
from partly.solvers.forest import Forest, log_odds
from partly.solvers.logistic import Features, Floats, sigmoid
from partly.solvers.many_items import MANY_ITEMS
from partly.solvers.portfolio import blend_with_forest, compute_steps, explain_portfolio, parse_budget
from partly.solvers.pseudo_targets import combine_targets, estimate_targets
from partly.solvers.relations import MIN_LABELS_PER_ITEM, compete, relate
from partly.solvers.solved_readout import BLOCK, SolvedReadout, declare_held_out_state, dense
from partly.solvers.thresholds import best_thresholds

TREES = ((100, 120, 50), (300, 60, 20), (math.inf, 20, 8))  # labels below; trees; trees per fold
TREES_OF_MANY = ((100, 60, 20), (300, 40, 12), (math.inf, 16, 6))  # for many items
MAX_FOREST_ITEMS = 20_000  # a forest grows from a sample of this size
MAX_RELATED_LABELS = 2000  # with more labels, relations between them are not used
DENSE = 1 << 28  # maximum numbers in all features for a forest
CRITERION = "log-loss"  # of calibrated held-out scores; see `partly.criteria`


class Auto(SolvedReadout):
    """The steps of the first epoch are the models; out-of-fold scores of training entries are stored."""

    entry_state = (
        *declare_held_out_state("kernel"),
        EntryState("held_out_forest"),
        EntryState("held_out_all", belief=torch.float32),
    )
    working_bytes = 160
    variable_size_modules = (*SolvedReadout.variable_size_modules, "forest")
    kinds = ("features",)
    lines: Tensor  # [2, L], factors of kernel machines and forest
    forest_mean: Tensor  # [L], of the forest's scores
    shift: Tensor  # [L], bias of the sum
    relation: Tensor  # [L, L]
    relation_mean: Tensor  # [L]
    competition: Tensor
    last: Tensor  # [2, L], slope and bias
    called: Tensor  # [L], decision thresholds

    def __init__(self, task: Task, *, budget: float | str | None = None) -> None:
        only_yes = task.observed is not None and not task.observed.counts()[1].any()
        task = task.with_config(head="kernel", head_settings={"axes": 600 if task.labels < 300 else 300})
        super().__init__(task, assume_negative if only_yes else bce, {})
        self.only_yes, self.budget = only_yes, parse_budget(budget)
        self.forest = Forest(task.labels)
        self.computed: dict[str, Any] = {}  # results of steps that were computed ahead
        labels, related = task.labels, task.labels if task.labels <= MAX_RELATED_LABELS else 0
        as_it_is = torch.stack([torch.ones(labels), torch.zeros(labels)])
        self.register_buffer("lines", as_it_is.clone())
        for name in ("forest_mean", "shift"):
            self.register_buffer(name, torch.zeros(labels))
        self.register_buffer("relation", torch.zeros(related, related))
        self.register_buffer("relation_mean", torch.zeros(related))
        self.register_buffer("competition", torch.zeros(()))
        self.register_buffer("last", as_it_is.clone())
        self.register_buffer("called", torch.full((labels,), 0.5))

    @classmethod
    def entry_state_for(cls, task: Task, settings: Mapping[str, Any]) -> tuple[EntryState, ...]:
        return cls.entry_state

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        logits = self.lines[0] * self.network(x) + self.shift
        if len(self.forest.roots):
            standardized_x = self.network.get_submodule("features.0")(x)
            logits = logits + self.lines[1] * (log_odds(self.forest(standardized_x)) - self.forest_mean)
        if len(self.relation):
            logits = logits + (logits - self.relation_mean) @ self.relation
        crowd = torch.log(torch.sigmoid(logits).sum(dim=1, keepdim=True) + MIN_LABELS_PER_ITEM)
        final: Tensor = self.last[0] * (logits - self.competition * crowd) + self.last[1]
        return final

    def out_of_fold(self, rows: slice = slice(None)) -> Tensor | None:
        return self.get_buffer("held_out_all")[rows]

    def beliefs(self, rows: slice = slice(None)) -> Tensor | None:
        z = self.observed(rows)
        return torch.where(z == 0, torch.sigmoid(self.get_buffer("held_out_all")[rows]), (z > 0).float())

    def thresholds(self) -> Tensor | None:
        return self.called

    # ---------------------------------------------------------------- the parts, one after the other

    def steps(self, pool: Pool) -> int:
        return len(self._steps(pool))

    def _steps(self, pool: Pool) -> list[str]:
        folds = int(self.fold(pool).max()) + 1
        forests = [*(f"forest without fold {k + 1}" for k in range(folds)), "forest"] if folds > 1 else []
        return [*self.spans, "kernels", *forests, "together"]

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        steps = self._steps(pool)
        for number in range(clock.step, len(steps)):
            if self.task.config.lr and not clock.epoch:
                self._try_step(pool, steps[number:])
            yield {"loss": self.best_loss()}

    def _try_step(self, pool: Pool, steps: list[str]) -> None:
        """Run the first of these steps; if it fails or exceeds the budget, leave its model out and record why."""
        step, part = steps[0], steps[0].split()[0]
        needed = step in ("linear", "kernels", "together")
        seconds, left_out = (self.notes.setdefault(name, {}) for name in ("seconds", "left_out"))
        begun = time.monotonic()
        if not needed and part not in left_out and sum(seconds.values()) >= self._compute_time_limit(seconds):
            left_out[part] = "the budget was spent"
        if part in left_out:
            return
        if step not in self.computed:
            peers = [other for other in steps if self._stage(other) == self._stage(step)]
            self.computed |= compute_steps(partial(self.compute, pool), step, peers)
        result, error = self.computed.pop(step)
        if error is not None:
            if needed:
                raise error
            left_out[part] = f"{type(error).__name__}: {error}"
        else:
            self._store(pool, step, result)
        seconds[part] = seconds.get(part, 0.0) + time.monotonic() - begun

    def _stage(self, step: str) -> str:
        """Return the stage of a step; the steps of one stage are independent of each other."""
        return "models" if step in self.spans else step.split()[0]

    def _compute_time_limit(self, seconds: dict[str, float]) -> float:
        amount, in_fits = self.budget
        return amount * seconds.get("linear", 0.0) if in_fits else amount

    @torch.no_grad()
    def compute(self, pool: Pool, step: str) -> Any:
        """Return the model of a step, if it has one, without changing `self`."""
        if step in self.spans:
            return self.compute_fit(pool, step)
        if step == "forest":
            return self._grow(pool)
        return self._grow_without(pool, int(step.split()[-1]) - 1) if step.startswith("forest") else None

    @torch.no_grad()
    def _store(self, pool: Pool, step: str, result: Any) -> None:
        if step in self.spans:
            self.store_fit(step, result)
        elif step == "kernels":
            self.blend(pool)
        elif step == "together":
            self._combine(pool)
        elif step == "forest":
            forest, mean = result
            self.forest.load_state_dict(forest.state_dict())
            self.forest_mean.copy_(mean)
        else:
            out, scores = result
            self.get_buffer("held_out_forest")[out] = scores.to(self.device)

    def _grow(self, pool: Pool) -> tuple[Forest, Tensor]:
        """Return the forest that predicts, and its mean score; out-of-fold estimates of the kernel machines are targets
        of unknown entries."""
        weights, targets = self.weights_and_targets(pool)
        seed = seed_for(self.task.config.seed, "forest")
        rows = slice(None) if len(pool) <= MAX_FOREST_ITEMS else _sample_rows(np.arange(len(pool)), seed)
        p = sigmoid(self._kernel_logits()[:, rows])
        forest_targets = combine_targets(weights[:, rows], targets[:, rows], p, self.only_yes)
        x, forest = _dense_rows(self.features(pool, "linear"), rows), Forest(self.task.labels)
        forest.grow(x, forest_targets, self._tree_counts(len(pool))[0], seed)
        chunks = torch.from_numpy(x).split(BLOCK)
        sums = [log_odds(forest(part)).sum(dim=0, dtype=torch.float64) for part in chunks]
        return forest, torch.stack(sums).sum(dim=0) / len(x)

    def _grow_without(self, pool: Pool, fold: int) -> tuple[npt.NDArray[np.intp], Tensor]:
        """Return the items of a fold, and their scores by a small forest without it, to measure the held-out loss. Its
        targets did not see the fold."""
        x, (weights, targets), folds = self.features(pool, "linear"), self.weights_and_targets(pool), self.fold(pool)
        used = self.counts > 0 if len(pool) >= MANY_ITEMS else torch.ones_like(self.counts, dtype=torch.bool)
        number = int(torch.where(used, self.losses, math.inf).argmin())
        best, strength = list(self.spans)[number], float(self.strengths[number])
        seed = seed_for(self.task.config.seed, "forest", fold)
        rows, out = _sample_rows(np.flatnonzero(folds != fold), seed), np.flatnonzero(folds == fold)
        p = estimate_targets(self.features(pool, best), weights, targets, rows, strength, self.only_yes, seed)
        forest_targets = combine_targets(weights[:, rows], targets[:, rows], p, self.only_yes)
        forest = Forest(self.task.labels)
        forest.grow(_dense_rows(x, rows), forest_targets, self._tree_counts(len(pool))[1], seed)
        blocks = [torch.from_numpy(_dense_rows(x, part)) for part in np.split(out, range(BLOCK, len(out), BLOCK))]
        scores = torch.cat([log_odds(forest(part)) for part in blocks])
        # Centered: the mean depends on how many positives are held out, as the bias of a kernel machine does.
        return out, scores - scores.mean(dim=0)

    def _tree_counts(self, items: int) -> tuple[int, int]:
        """Return the trees of the forest that predicts and of the forest without a fold."""
        rows = TREES if items < MANY_ITEMS else TREES_OF_MANY
        return next((trees, of_fold) for labels, trees, of_fold in rows if self.task.labels < labels)

    def _kernel_logits(self) -> Floats:
        """Return out-of-fold logits of the kernel machines, [L, N]."""
        blended = super().out_of_fold()
        assert blended is not None
        return blended.cpu().numpy().T

    def _combine(self, pool: Pool) -> None:
        """Blend kernel machines and forest; then relate labels and let them compete."""
        weights, targets = self.weights_and_targets(pool)
        kernels = self._kernel_logits()
        losses = [calibrate(kernels, weights, targets).loss, math.inf]
        held_out = [kernels, self.read_held_out("forest")]
        if len(self.forest.roots):
            losses[1] = calibrate(held_out[1], weights, targets).loss
        found, share = blend_with_forest(held_out, losses, weights, targets)
        self.lines.copy_(torch.from_numpy(found.slopes))
        self.shift.copy_(torch.from_numpy(found.bias))
        logits = found.held_out
        if len(self.relation):
            related = relate(logits, weights, targets, self.fold(pool))
            self.relation.copy_(torch.from_numpy(related.matrix))
            self.relation_mean.copy_(torch.from_numpy(related.mean))
            logits = related.held_out
        part, logits = compete(logits, weights, targets)
        self.competition.fill_(part)
        plain = line = calibrate(logits, weights, targets)
        population = weights if self.only_yes else reweight_by_missingness(logits, weights, targets)
        if population is not weights:  # probabilities and thresholds refer to all entries, not to known ones
            line = calibrate(logits, population, targets)
        slope, bias, logits = line.slope, line.bias, line(logits)
        (gain,) = relative_gains([line.loss], population, targets)
        called = best_thresholds(sigmoid(logits), targets, self.only_yes, gain)
        if self.only_yes:  # shift logits so that the threshold is 0.5: the probability of a known positive means little
            lift = -np.log(called / (1 - called))
            bias, logits, called = bias + lift, logits + lift[:, None], np.full_like(called, 0.5)
        self.last.copy_(torch.from_numpy(np.stack([slope, bias])))
        self.get_buffer("held_out_all").copy_(torch.from_numpy(logits.T))
        self.called.copy_(torch.from_numpy(called))
        self._record_portfolio(share, [*self.losses.tolist(), losses[1]], plain.loss, weights, targets)

    def _record_portfolio(
        self, share: float, losses: list[float], loss: float, weights: Floats, targets: Floats
    ) -> None:
        """Record the models, their gains and weights, and the summary."""
        *worth, together = relative_gains([*losses, loss], weights, targets)
        counts = [*((1 - share) * count for count in self.counts.tolist()), share]
        seconds, left_out = self.notes["seconds"], self.notes["left_out"]
        models = [
            {"name": name, "score": score, "weight": weight, "seconds": seconds.get(name, 0.0)}
            for name, score, weight in zip((*self.spans, "forest"), worth, counts, strict=True)
            if math.isfinite(score)  # models that were left out have no loss
        ]
        self.notes |= {"criterion": CRITERION, "score": together, "portfolio": models}
        self.notes["reason"] = explain_portfolio(
            models, together, left_out, self.only_yes, bool(self.relation.any()), self.competition.item()
        )


def _sample_rows(rows: npt.NDArray[np.intp], seed: int) -> npt.NDArray[np.intp]:
    """Return the rows that a forest grows from: all, or a random sample of `MAX_FOREST_ITEMS`."""
    return (
        rows
        if len(rows) <= MAX_FOREST_ITEMS
        else np.sort(np.random.default_rng(seed).permutation(rows)[:MAX_FOREST_ITEMS])
    )


def _dense_rows(x: Features, rows: npt.NDArray[np.intp] | slice) -> Floats:
    """Return rows of features as a dense array, which a forest needs."""
    count = min(x.shape[0], MAX_FOREST_ITEMS)
    if count * x.shape[1] > DENSE:
        raise MemoryError(f"a forest needs {count} x {x.shape[1]} features at once")
    return dense(x[rows])
