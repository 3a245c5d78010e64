"""Two networks learn only from the items on which they disagree.

When to use
    As a baseline: the simplest way in which two networks select training items.

Formula
    both networks learn from the items with  (p_f > 1/2) != (p_g > 1/2)  for some label, after the warm-up
    loss: mean over labels of -log p (yes), -log(1 - p) (no, unknown)

Reference
    E. Malach, S. Shalev-Shwartz. Decoupling "when to update" from "how to update". NIPS 2017.

Known negatives
    Ordinary negatives. Unknown entries are treated as negatives.

Differences from the paper
    The paper has one class per item. Here two networks disagree on an item if they differ in at least one label at
    probability one half, and the loss of an item is the mean over its labels. Networks that predict no label at all
    never disagree, so both learn from all items for the share `warmup` of the epochs (the authors' code: a number of
    steps). A batch without remaining items changes nothing.

Defaults
    warmup = 0.5 was chosen by validation: with a shorter warm-up the networks soon predict no label at all and stop
    learning.
"""

from __future__ import annotations

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, disagree, mean_over_items
from partly.errors import within
from partly.method import About, Task

ABOUT = About(search={"warmup": (0.0, 0.9)})


class Decoupling(TwoNetworks):
    def __init__(self, task: Task, *, warmup: float = 0.5, predict: Predict = "mean") -> None:
        super().__init__(task, predict)
        within(0, 1, warmup=warmup)
        self.warmup = warmup

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once items with agreement are dropped."""
        return clock.epoch >= self.warmup * clock.epochs

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"items on which both agree are left out": self.may_be_best(clock)}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        items = disagree(f, g) if self.may_be_best(clock) else torch.ones_like(z[:, 0], dtype=torch.bool)
        return mean_over_items(losses.assume_negative(f, z) + losses.assume_negative(g, z), items)
