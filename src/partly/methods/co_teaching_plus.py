"""Co-teaching among the items on which the two networks disagree; unknown entries are taken for no.

Take it: as `co-teaching`, where its two networks become alike too soon.

Formula:

    as co-teaching, among the items with  (p_f > 1/2) != (p_g > 1/2)  for some label, once the warm-up is over

Paper: X. Yu, B. Han, J. Yao, G. Niu, I. Tsang, M. Sugiyama. How does Disagreement Help Generalization against Label
Corruption? ICML 2019. "Co-teaching+".

Known no: an ordinary negative. Unknown: the same as a known no. The items on which both networks agree are left out,
then the share `forget` of the rest, with the largest losses of the other network.

Differs: the paper has one class an item. Here two networks disagree on an item if they differ in at least one label at
probability one half, and an item's loss is the mean over its labels. For the share `warmup` of the epochs it is plain
co-teaching (the paper: some epochs, by data set). The loss is computed from logits and is the mean over the items that
are left; the authors' code takes the softmax twice and divides twice. Where no item is left, nothing changes.

Defaults: forget and ramp are those of co-teaching, warmup is that of decoupling, and for the same reason; the paper's
for CIFAR-10 is 0.1, 20 of 200 epochs.
"""

from __future__ import annotations

from torch import Tensor

from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, co_teaching_loss, disagree, kept
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
        """Once those on which both agree are left out."""
        return clock.epoch >= self.warmup * clock.epochs

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"items on which both agree are left out": self.may_be_best(clock)}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        among = disagree(f, g) if self.may_be_best(clock) else None
        return co_teaching_loss(f, g, z, kept(clock, self.forget, self.ramp), among)
