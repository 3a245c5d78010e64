"""Co-teaching+: co-teaching among the items on which the two networks disagree.

When to use
    As `co-teaching`, where its two networks become alike too soon.

Formula
    as co-teaching, among the items with  (p_f > 1/2) != (p_g > 1/2)  for some label, after the warm-up

Reference
    X. Yu, B. Han, J. Yao, G. Niu, I. Tsang, M. Sugiyama. How does Disagreement Help Generalization against Label
    Corruption? ICML 2019.

Known negatives
    Ordinary negatives. Unknown entries are treated as negatives.

Differences from the paper
    The paper has one class per item. Here two networks disagree on an item if they differ in at least one label at
    probability one half, and the loss of an item is the mean over its labels. The warm-up, plain co-teaching, takes
    the share `warmup` of the epochs (the paper: some epochs, by data set). The loss is computed from logits, as the
    mean over the remaining items; the authors' code applies softmax twice and divides twice. A batch without
    remaining items changes nothing.

Defaults
    forget and ramp are those of `co-teaching`, warmup is that of `decoupling`. The paper's warm-up for CIFAR-10 is 0.1
    (20 of 200 epochs).
"""

from __future__ import annotations

from torch import Tensor

from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, co_teaching_loss, disagree, share_to_keep
from partly.errors import within
from partly.method import About, Task

ABOUT = About(search={"forget": (0.0, 0.5), "ramp": (0.0, 1.0), "warmup": (0.0, 0.9)}, in_papers=("Co-teaching+",))


class CoTeachingPlus(TwoNetworks):
    def __init__(
        self,
        task: Task,
        *,
        forget: float = 0.02,
        ramp: float = 0.1,
        warmup: float = 0.5,
        predict: Predict = "mean",
    ) -> None:
        super().__init__(task, predict)
        within(0, 1, forget=forget, ramp=ramp, warmup=warmup)
        self.forget, self.ramp, self.warmup = forget, ramp, warmup

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once items with agreement are dropped."""
        return clock.epoch >= self.warmup * clock.epochs

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"items on which both agree are left out": self.may_be_best(clock)}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        among = disagree(f, g) if self.may_be_best(clock) else None
        return co_teaching_loss(f, g, z, share_to_keep(clock, self.forget, self.ramp), among)
