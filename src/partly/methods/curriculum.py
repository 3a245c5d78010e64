"""`partial-bce`, and twice during training confident predictions become weak labels.

When to use
    A tenth to a third of the entries is known. Use `strategy="threshold"` from a good start (`head="warm-linear"`).

Formula
    g(k / L) times:  yes -log p,  no -log(1 - p),  unknown 0;   k of L known or weakly labeled,  g as in partial-bce
    at 45 % and 70 % of the epochs, unknown entries selected by the strategy get the label sign(x)

Reference
    T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
    CVPR 2019. Algorithm 1 and equations 8 to 11; [a] threshold, [b] proportion, [c] positive, [d] ensemble,
    [e] bayesian, and "2 steps" (two-steps).

Known negatives
    Ordinary negatives, never relabeled. Unknown entries have no loss until they are labeled.

Strategies
    threshold    |x| >= theta
    proportion   the share theta of a batch's unknown entries with the largest |x|
    positive     x >= theta
    ensemble     as threshold, with the mean x of several networks
    bayesian     a variance of x over passes with dropout of at most theta
    two-steps    all unknown entries, once
    Weak labels count as known in g unless `count_weak=False`.

Differences from the paper
    The paper labels before the 10th and the 15th of 20 epochs; here at the same shares of any schedule, but not before
    the second epoch. Weak labels persist, as the paper's shares of labels imply; `recompute` starts each round from
    the observed labels. The paper does not say where its network has dropout; here it is applied to the features
    that the head sees. All networks of an ensemble learn from the weak labels, and the first predicts. Only epochs
    that learned from weak labels can be the best.

Defaults
    theta is the paper's per strategy. It is in units of logits, so it depends on how the network was trained: watch
    `labelled`, the share of labeled entries, in the history. dropout and passes are those of the paper cited for the
    uncertainty (A. Kendall, Y. Gal, NIPS 2017).
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.clock import Clock
from partly.distributed.share import BatchShard
from partly.errors import within
from partly.losses import bce, normalization_coefficients
from partly.method import About, EntryState, Method, Task
from partly.networks import Network, eval_mode
from partly.networks.residual import ResidualHead
from partly.pool import Batch, Pool
from partly.selection import largest

ABOUT = About(
    learns_from="no",
    search={"theta": (0.1, 1.0), "value": (1.5, 50.0)},  # a theta that every strategy takes
    in_papers=("partial-BCE + fine-tuning + relabeling",),
    learns_from_unknown=True,
)
ROUNDS = (9 / 20, 14 / 20)  # shares of the schedule
FROM_SOLVED = (0.0, 10 / 20)  # the same from a solved start, which is the end of the first phase
THETA = {"two-steps": 0.0, "threshold": 2.0, "proportion": 0.8, "positive": 5.0, "ensemble": 2.0, "bayesian": 0.3}
ROWS = 1024  # rows per block when counting weak labels


class Curriculum(Method):
    entry_state = (EntryState("weak", torch.int8, belief=torch.float16),)

    weak: Tensor  # +1, -1, or 0 without a weak label; 0 for observed entries
    labelled: Tensor

    def __init__(
        self,
        task: Task,
        *,
        strategy: Literal["two-steps", "threshold", "proportion", "positive", "ensemble", "bayesian"] = "bayesian",
        theta: float | None = None,
        recompute: bool = False,
        count_weak: bool = True,
        value: float = 5.0,
        dropout: float = 0.2,
        passes: int = 50,
        space: Literal["logits", "probabilities"] = "logits",
        stat: Literal["variance", "deviation"] = "variance",
        networks: int = 3,
    ) -> None:
        super().__init__(task)
        within(2, math.inf, passes=passes)
        within(0, 1, dropout=dropout)
        within(1, math.inf, networks=networks)
        self.strategy, self.theta = strategy, THETA[strategy] if theta is None else theta
        within(0, 1 if strategy == "proportion" else math.inf, theta=self.theta)
        self.recompute, self.count_weak = recompute, count_weak
        self.dropout, self.passes, self.space, self.stat = dropout, passes, space, stat
        self.alpha, self.beta = normalization_coefficients(p0=0.1, value=value, gamma=1.0)
        roles = ["network", *(f"member {number}" for number in range(2, networks + 1))]
        self.networks = nn.ModuleList(task.network(role) for role in (roles if strategy == "ensemble" else roles[:1]))
        self.optimizer = task.make_optimizer(self.networks.parameters())
        self.register_buffer("labelled", torch.zeros(()))

    # ---------------------------------------------------------------- relabeling

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if (clock.epoch > 0 or self.task.start is not None) and clock.epoch in self.rounds(clock.epochs):
            self._relabel(pool, clock)
        labeled = int(pool.labels.known_per_item().sum()) + sum(
            int(torch.count_nonzero(part)) for part in self.weak.split(ROWS)
        )
        self.labelled.fill_(labeled / self.weak.numel())

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once weak labels are used, or no more can come."""
        return clock.epoch >= self.rounds(clock.epochs)[-1] or any(bool(part.any()) for part in self.weak.split(ROWS))

    def rounds(self, epochs: int) -> list[int]:
        """Return the epochs, from 0, before which entries are labeled."""
        shares = ROUNDS if self.task.start is None else FROM_SOLVED  # its scores can be labeled by at once
        starts = [min(math.ceil(share * epochs - 1e-9), epochs - 1) for share in shares]
        return starts[:1] if self.strategy == "two-steps" else starts

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"rounds of labeling": sum(0 < start <= clock.epoch for start in self.rounds(clock.epochs))}

    @torch.no_grad()
    def _relabel(self, pool: Pool, clock: Clock) -> None:
        if self.recompute:
            self.weak.zero_()
        with eval_mode(self):
            for batch in pool.batches(clock):  # training batches, since `proportion` is a share of each
                weak = self.weak[batch.index]
                free = (batch.z == 0) & (weak == 0)
                scores, easy = self._select_confident(batch.x, free)
                if clock.epoch == 0:
                    scores = self._first_scores[batch.index]
                self.weak[batch.index] = torch.where(free & easy, scores.sign().to(torch.int8), weak)

    @property
    def _first_scores(self) -> Tensor:
        """Out-of-fold logits of start and teachers, whose signs are the first weak labels. [N, L]"""
        first = self.task.first_logits()
        assert first is not None
        return first.to(self.weak.device)

    def _select_confident(self, x: Tensor | BatchShard, free: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores [B, L], whose signs are the labels, and the mask of confident entries [B, L]."""
        head = self.networks[0].head
        if self.strategy == "bayesian" and isinstance(head, ResidualHead) and head.is_linear and self.space == "logits":
            variance = self.dropout / (1 - self.dropout) * self._squares(x, head)
            return self.networks[0](x), (variance if self.stat == "variance" else variance.sqrt()) <= self.theta
        if self.strategy == "bayesian":
            samples = self._samples(x)
            spread = torch.sigmoid(samples) if self.space == "probabilities" else samples
            spread = spread.var(dim=0) if self.stat == "variance" else spread.std(dim=0)
            return samples.mean(dim=0), spread <= self.theta
        scores = torch.stack([network(x) for network in self.networks]).mean(dim=0)
        if self.strategy == "two-steps":
            return scores, free
        if self.strategy == "proportion":
            return scores, largest(scores.abs(), free, int(self.theta * int(free.sum()) + 1e-9))
        easy = scores >= self.theta
        return scores, easy if self.strategy == "positive" else easy | (scores < -self.theta)

    def _squares(self, x: Tensor | BatchShard, head: ResidualHead) -> Tensor:
        """Sum over the features of (weight x feature)^2, from which the variance under dropout follows. [B, L]"""
        network = self.networks[0]
        assert isinstance(network, Network)
        return network.embed(x).square() @ head.total_weight.square().T

    def _samples(self, x: Tensor | BatchShard) -> Tensor:
        """Return logits of several passes with dropout on the features only. [passes, B, L]"""
        network = self.networks[0]
        assert isinstance(network, Network)
        features = network.embed(x)
        return torch.stack([network.head(F.dropout(features, self.dropout)) for _ in range(self.passes)])

    # ---------------------------------------------------------------- training

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        z = torch.where(batch.z == 0, self.weak[batch.index], batch.z)
        counted = z if self.count_weak else batch.z
        weight = self.alpha * (counted != 0).float().mean(dim=1, keepdim=True) + self.beta
        losses = [(bce(network(batch.x, batch.z), z) * weight).mean() for network in self.networks]
        self.step(torch.stack(losses).sum(), clock, self.optimizer)
        return {"loss": losses[0].item(), "labelled": self.labelled.item()}

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        logits: Tensor = self.networks[0](x, z)
        return logits

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        """Return observed labels, weak labels, and one half elsewhere."""
        z = self.observed(rows)
        return ((torch.where(z == 0, self.weak[rows], z).float() + 1) / 2).half()


def label_rates(weak: Tensor, truth: Tensor) -> dict[str, float]:
    """Rate weak labels in a simulation: both [N, L], +1 yes, -1 no, 0 none or unknown.

    "TP" is the share labeled yes among weakly labeled entries that are truly yes, "TN" the share labeled no among
    those truly no, and "accuracy" the share labeled correctly. NaN if there is none.
    """
    right = weak == truth
    groups = {"TP": truth > 0, "TN": truth < 0, "accuracy": truth != 0}
    return {name: right[(weak != 0) & group].float().mean().item() for name, group in groups.items()}
