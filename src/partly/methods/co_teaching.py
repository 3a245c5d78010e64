"""Co-teaching: each of two networks learns from the items that fit the other network best.

When to use
    Whole items are mislabeled. Where every item misses a label or two, `cls` drops entries instead of items.

Formula
    f learns from the items with the smallest loss under g, without the r * forget share of a batch; g likewise
    r = min(1, epoch / (ramp * epochs));   loss: mean over labels of -log p (yes), -log(1 - p) (no, unknown)

Reference
    B. Han, Q. Yao, X. Yu, G. Niu, M. Xu, W. Hu, I. Tsang, M. Sugiyama. Co-teaching: Robust Training of Deep Neural
    Networks with Extremely Noisy Labels. NeurIPS 2018.

Known negatives
    Ordinary negatives. Unknown entries are treated as negatives.

Differences from the paper
    The paper has one class per item; here the loss of an item is the mean over its labels. The dropped share grows
    from 0 over the share `ramp` of the epochs. The loss is the mean over the remaining items; the authors' code
    divides by their number twice.

Defaults
    forget = 0.02 was chosen by validation on features; larger values hurt. ramp = 0.1 was not searched.
"""

from __future__ import annotations

from torch import Tensor

from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, co_teaching_loss, ramp_up, share_to_keep
from partly.errors import within
from partly.method import About, Task

ABOUT = About(search={"forget": (0.0, 0.5), "ramp": (0.0, 1.0)}, in_papers=("Co-teaching",))


class CoTeaching(TwoNetworks):
    def __init__(self, task: Task, *, forget: float = 0.02, ramp: float = 0.1, predict: Predict = "mean") -> None:
        super().__init__(task, predict)
        within(0, 1, forget=forget, ramp=ramp)
        self.forget, self.ramp = forget, ramp

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once items are dropped."""
        return ramp_up(clock, self.ramp) > 0

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"items left out": 1 - share_to_keep(clock, self.forget, self.ramp)}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        return co_teaching_loss(f, g, z, share_to_keep(clock, self.forget, self.ramp))
