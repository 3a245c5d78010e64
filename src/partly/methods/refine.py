"""Pseudo-labels of unknown entries are set by a look-ahead step, judged on the fully labeled items.

When to use
    A few items are fully labeled and all others partly, for example after a label was split.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  CE(p, b);   b = 1 where d L(theta - lr dL(b)) / db <= 0, else 0
    L: the loss on fully labeled items

Reference
    C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
    Pseudo-Label Approach. arXiv 2109.14676, 2021. Algorithm 1 with equation 8.

Known negatives
    Ordinary negatives. An unknown entry has a pseudo-label, which persists between epochs. Without any fully labeled
    item, only known entries are used, as in `bce`.

Differences from the paper
    Means instead of sums, and a batch of items at a time. At most `fine_items` fully labeled items judge, the same
    ones throughout an epoch and without augmentation. The look-ahead is without dropout. Pseudo-labels start at
    `start`, which the paper does not specify. Fully labeled items are in the batches too, and with `fine_weight` the
    judging items also enter the real step; in the paper they only judge. `rate` below 1 moves a pseudo-label only part
    of the way. `sharpness` makes equation 8 soft: sigmoid(-sharpness x gradient / mean size of the gradient). `ahead`
    is the ratio of the look-ahead learning rate to the real one.

Defaults
    As in the paper, confirmed by validation with coarse labels and an MLP head.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from partly.clock import Clock
from partly.errors import within
from partly.lookahead import pseudo_label_gradient
from partly.losses import bce, cross_entropy
from partly.method import About, EntryState, Method, Task
from partly.pool import Batch, Pool

ABOUT = About(
    learns_from="items",
    search={"rate": [0.5, 1.0], "fine_weight": [0.0, 0.1, 1.0], "sharpness": [None, 1.0]},
    in_papers=("Ours (pseudo-label)",),
    learns_from_unknown=True,
)
MIN_GRADIENT = 1e-30  # avoids a division by 0


class Refine(Method):
    entry_state = (EntryState("pseudo", belief=torch.float32),)

    pseudo: Tensor  # observed labels as 1 or 0, pseudo-labels elsewhere

    def __init__(
        self,
        task: Task,
        *,
        start: float = 0.5,
        rate: float = 1.0,
        sharpness: float | None = None,
        ahead: float = 1.0,
        fine_weight: float = 0.0,
        fine_items: int = 256,
    ) -> None:
        super().__init__(task)
        within(0, 1, start=start, rate=rate)
        within(0, math.inf, sharpness=sharpness or 0.0, fine_weight=fine_weight)
        within(1e-6, math.inf, ahead=ahead)
        within(1, math.inf, fine_items=fine_items)
        self.rate, self.sharpness, self.ahead = rate, sharpness, ahead
        self.fine_weight, self.fine_items = fine_weight, fine_items
        self.network = task.network(
            at_random=False
        )  # labels that follow from coarse negatives are not missing at random
        self.optimizer = task.make_optimizer(self.network.parameters())
        self.pseudo.fill_(start)

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        if clock.epoch == 0:
            if self.task.prior is not None and (first := self.task.first_logits()) is not None:
                self.pseudo.copy_(first.sigmoid())
            for index, z in pool.labels_in_order():
                self.pseudo[index] = torch.where(z == 0, self.pseudo[index], (z > 0).to(self.pseudo.dtype))

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        fine = pool.take(
            pool.fully_labelled[clock.epoch_rng("fine").permutation(len(pool.fully_labelled))[: self.fine_items]]
        )
        for batch in pool.batches(clock):
            loss = self._loss(batch, fine, clock)
            self.step(loss, clock, self.optimizer)
            yield {"loss": loss.item()}

    def _loss(self, batch: Batch, fine: Batch, clock: Clock) -> Tensor:
        """Return the loss of the real step, after the pseudo-labels of the batch have moved."""
        if not len(fine.index):
            return bce(self.network(batch.x, batch.z), batch.z).mean()
        pseudo = self._refine(batch, fine, self.ahead * self.learning_rate(clock))
        self.pseudo[batch.index] = pseudo
        loss = cross_entropy(self.network(batch.x, batch.z), pseudo).mean()
        if self.fine_weight:
            loss = loss + self.fine_weight * bce(self.network(fine.x, fine.z), fine.z).mean()
        return loss

    def _refine(self, batch: Batch, fine: Batch, lr: float) -> Tensor:
        """Return observed labels of the batch, and its new pseudo-labels. [B, L]"""
        pseudo = self.pseudo[batch.index]
        slope = pseudo_label_gradient(self.network, batch.x, pseudo, fine.x, fine.z, lr)
        if self.sharpness is None:
            better = (slope <= 0).to(pseudo.dtype)
        else:
            better = torch.sigmoid(-self.sharpness * slope / slope.abs().mean().clamp(min=MIN_GRADIENT))
        return torch.where(batch.z == 0, pseudo.lerp(better, self.rate), pseudo)

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        """Return observed labels, and pseudo-labels elsewhere."""
        return self.pseudo[rows]
