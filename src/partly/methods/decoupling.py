"""Two networks that learn only from the items on which they disagree; unknown entries are taken for no.

Take it: to compare with: the simplest way in which two networks choose what they learn from.

Formula:

    both networks learn from the items with  (p_f > 1/2) != (p_g > 1/2)  for some label, once the warm-up is over
    -log p (yes), -log(1 - p) (no, unknown), the mean over labels

Paper: E. Malach, S. Shalev-Shwartz. Decoupling "when to update" from "how to update". NIPS 2017.

Known no: an ordinary negative. Unknown: the same as a known no.

Differs: the paper has one class an item. Here two networks disagree on an item if they differ in at least one label at
probability one half, and an item's loss is the mean over its labels. Networks that say no to everything never disagree,
so both learn from all items at first, for the share `warmup` of the epochs (in the authors' code: a number of steps).
Where no item is left in a batch, nothing changes.

Defaults: warmup = 0.5 was chosen by validation on the features of VOC 2012 with an MLP head and a quarter of the yes
known: with 0.1 the networks soon say no to everything, and learn no more. The best epoch would
lie within the warm-up, but is chosen after it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, disagree, mean_of
from partly.errors import within
from partly.method import About, Task

ABOUT = About(search={"warmup": (0.0, 0.9)})


class Decoupling(TwoNetworks):
    def __init__(self, task: Task, *, warmup: float = 0.5, predict: Predict = "mean") -> None:
        super().__init__(task, predict)
        within(0, 1, warmup=warmup)
        self.warmup = warmup

    def may_be_best(self, clock: Clock) -> bool:
        """Once those on which both agree are left out."""
        return clock.epoch >= self.warmup * clock.epochs

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"items on which both agree are left out": self.may_be_best(clock)}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        items = disagree(f, g) if self.may_be_best(clock) else torch.ones_like(z[:, 0], dtype=torch.bool)
        return mean_of(losses.assume_negative(f, z) + losses.assume_negative(g, z), items)
