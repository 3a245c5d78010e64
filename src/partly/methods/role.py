"""ROLE: an estimate of every training entry is learned together with the network.

When to use
    Only positives are known and you need the estimates themselves (`beliefs_`), at twelve bytes per entry.

Formula
    network    CE(p, y) on known entries + CE(p, b) on all + count(p)
    estimates  CE(b, y) on known entries + CE(b, p) on all + count(b);   both halved, each with the other side fixed
    count(p) = ((mean over items of the sum of p) - expected_yes)^2 / L^2

Reference
    E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
    Labels. CVPR 2021. "ROLE", regularized online label estimation.

Known negatives
    Ordinary negatives in both losses. Estimates start at 0.005 for negatives, 0.995 for positives, and between 0.4 and
    0.6 for unknown entries.

Differences from the paper
    The paper uses the true number of positives per item (VOC 1.5, COCO 2.9); by default it is estimated. With known
    negatives it is L times the share of positives among known entries. With positives only, the label frequency (the
    probability that a positive is known) is measured on the entries that score highest in held-out folds of a linear
    classifier; the number is the known positives per item divided by it. For images it is the number of known
    positives. The estimates have their own Adam, with learning rate `step`, which moves only the items of the batch;
    in the authors' code the moments of a dense Adam move the others too.

    Linear initialization ("ROLE+LI") is `linear_share` > 0: a linear network is trained for that share of the epochs
    (the paper: 25 of 35), and its estimates start the second phase, with a new network. Each phase has its own
    learning rate schedule, and only epochs of the second can be the best. The paper also keeps the linear layer's
    weights.

Defaults
    step = 0.5 was chosen by validation with one positive per item and a linear head.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.clock import Clock, seed_for
from partly.errors import within
from partly.losses import bce, count_penalty, cross_entropy, yes_per_item
from partly.method import About, EntryState, Method, Task
from partly.pool import Batch, Pool
from partly.solvers import folds
from partly.solvers.calibration import calibrate
from partly.solvers.logistic import Floats

ABOUT = About(search={"expected_yes": (1.0, 5.0), "step": (0.01, 1.0)}, in_papers=("ROLE",), learns_from_unknown=True)
UNKNOWN, KNOWN = math.log(0.6 / 0.4), math.log(0.995 / 0.005)  # largest initial estimates, as logits
SAMPLE, ENTRIES = 2000, 500_000  # maximum items and entries to estimate positives per item
TOP, MIN_TOP = 0.1, 50  # share of top-scoring known positives, and its minimum, for the label frequency
DECAY, DECAY_OF_SQUARES, ADAM_EPSILON = 0.9, 0.999, 1e-12  # of Adam; gradients of single entries are small


class Role(Method):
    entry_state = (
        EntryState("estimates", belief=torch.float32),
        EntryState("moment"),
        EntryState("squares"),
        EntryState("visits", per_label=False),
    )

    estimates: Tensor
    moment: Tensor
    squares: Tensor
    visits: Tensor
    expected: Tensor

    def __init__(
        self, task: Task, *, expected_yes: float | None = None, step: float = 0.5, linear_share: float = 0.0
    ) -> None:
        super().__init__(task)
        within(0, 1, linear_share=linear_share)
        linear_share = 0.0 if task.start is not None else linear_share  # the start is a solved linear training
        self.expected_yes, self.step_size, self.linear_share = expected_yes, step, linear_share
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())
        if linear_share:
            self.linear = task.with_config(head="linear", head_settings={}).network("linear")
            self.linear_optimizer = task.make_optimizer(self.linear.parameters())
        generator = torch.Generator().manual_seed(seed_for(task.config.seed, "estimates"))
        self.estimates.uniform_(-UNKNOWN, UNKNOWN, generator=generator)
        self.register_buffer("expected", torch.zeros(()))

    @classmethod
    def working_memory(cls, task: Task, settings: Mapping[str, Any]) -> int:
        # By default the number is counted if negatives are known, else estimated by cross-validation.
        counted = settings["expected_yes"] is not None or (
            task.observed is not None and task.observed.counts()[1].any()
        )
        return 0 if counted else folds.memory(_sample_size(len(task.items), task.labels), task.labels, 0)

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch > 0:
            return
        first = self.task.first_logits()
        if first is not None:
            self.estimates.copy_(first.clamp(-KNOWN, KNOWN))
        for index, z in pool.labels_in_order():
            self.estimates[index] = torch.where(z == 0, self.estimates[index], KNOWN * z)
        self.expected.fill_(self._estimate_yes_per_item(pool) if self.expected_yes is None else self.expected_yes)

    def _estimate_yes_per_item(self, pool: Pool) -> float:
        """Estimate positives per item from known labels and, with positives only, from the features."""
        yes, no = (int(count.sum()) for count in pool.labels.counts())
        known = yes_per_item(yes, no, *pool.labels.shape)
        if no or not yes or pool.items.kind != "features":
            return known
        seed = seed_for(self.task.config.seed, "yes per item")
        rows = np.sort(np.random.default_rng(seed).permutation(len(pool))[: _sample_size(*pool.labels.shape)])
        observed = pool.labels.rows(rows) == 1
        if self.task.start is not None:
            share = label_frequency(self.task.start.out_of_fold().numpy()[rows].T, observed)
        else:
            share = label_frequency(
                out_of_fold(self.standardized_features(pool.items[rows], pool.batch_size), observed, seed), observed
            )
        return min(known / share, max(known, pool.labels.shape[1] / 2))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        linear, phase = self._phase(clock)
        network, optimizer = (self.linear, self.linear_optimizer) if linear else (self.network, self.optimizer)
        logits = network(batch.x, batch.z)
        estimates = self.estimates[batch.index].requires_grad_()
        loss = (self._side(logits, estimates, batch.z) + self._side(estimates, logits, batch.z)) / 2
        self.step(loss, phase, optimizer)
        assert estimates.grad is not None
        self._move(batch.index, estimates.grad, self.task.learning_rate(phase, self.step_size))
        return {"loss": loss.item()}

    def _phase(self, clock: Clock) -> tuple[bool, Clock]:
        """Return whether this is the linear phase, and a clock whose schedule is that phase."""
        cut = min(round(self.linear_share * clock.epochs), clock.epochs - 1)
        if clock.epoch < cut:
            return True, replace(clock, epochs=cut)
        return False, replace(clock, epochs=clock.epochs - cut, epoch=clock.epoch - cut)

    def may_be_best(self, clock: Clock) -> bool:
        """Return True in the second phase, which trains the network of the model."""
        return not self._phase(clock)[0]

    def _side(self, logits: Tensor, other: Tensor, z: Tensor) -> Tensor:
        """Return the loss of one side from known labels, from the other side, and from the number of positives."""
        entries = bce(logits, z) + cross_entropy(logits, torch.sigmoid(other.detach()))
        return entries.mean() + count_penalty(logits, self.expected)

    @torch.no_grad()
    def _move(self, index: Tensor, gradient: Tensor, rate: float) -> None:
        """Make a step of Adam on these rows; all others stay unchanged."""
        self.visits[index] += 1
        visits = self.visits[index].unsqueeze(1)
        moment = self.moment[index].lerp_(gradient, 1 - DECAY)
        squares = self.squares[index].lerp_(gradient**2, 1 - DECAY_OF_SQUARES)
        self.moment[index], self.squares[index] = moment, squares
        scale = (squares / (1 - DECAY_OF_SQUARES**visits)).sqrt_().add_(ADAM_EPSILON)
        self.estimates[index] -= rate * moment / (1 - DECAY**visits) / scale

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        """Return observed labels, and estimates elsewhere."""
        z = self.observed(rows)
        return torch.where(z == 0, torch.sigmoid(self.estimates[rows]), (z > 0).float())


def _sample_size(items: int, labels: int) -> int:
    """Return the number of items used to estimate the positives per item."""
    return min(items, SAMPLE, max(1, ENTRIES // labels))


def out_of_fold(x: Any, yes: npt.NDArray[np.bool_], seed: int) -> Floats:
    """Return scores [L, N] of known yes against all else, from standardized features x [N, D], by 5-fold fits."""
    weights, targets = np.ones(yes.shape[::-1], np.float32), np.ascontiguousarray(yes.T, np.float32)
    return folds.solve(x, weights, targets, folds.assign_folds(len(yes), seed)).held_out


def label_frequency(held_out: Floats, yes: npt.NDArray[np.bool_]) -> float:
    """Return the chance that a yes is known, from out-of-fold scores [L, N] and the known yes [N, L]; 1 without any.

    What scores highest as a known yes is nearly always a yes, known or not, so the known share is counted there: among
    all entries that score no less than the best `TOP` of the known yes do.
    """
    count = int(yes.sum())
    if not count:
        return 1.0
    known = np.ascontiguousarray(yes.T)
    scores = calibrate(held_out, np.ones(known.shape, np.float32), known.astype(np.float32))(held_out)
    top = min(count, max(MIN_TOP, math.ceil(TOP * count)))
    least = np.sort(scores[known])[-top]
    return float((scores[known] >= least).sum() / (scores >= least).sum())
