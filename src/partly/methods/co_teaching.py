"""Two networks, each learns from the items of a batch that fit the other one best; unknown entries are taken for no.

Take it: where whole items are wrongly labelled. Where every item misses a label or two, `cls` leaves out entries, not
items.

Formula:

    f learns from the items with the smallest loss of g, all but the share r forget of a batch, and g likewise
    r = min(1, epoch / (ramp epochs));   loss: mean over labels of -log p (yes), -log(1 - p) (no, unknown)

Paper: B. Han, Q. Yao, X. Yu, G. Niu, M. Xu, W. Hu, I. Tsang, M. Sugiyama. Co-teaching: Robust Training of Deep Neural
Networks with Extremely Noisy Labels. NeurIPS 2018.

Known no: an ordinary negative. Unknown: the same as a known no. The share `forget` of the items of a batch, with the
largest losses of the other network, is left out.

Differs: the paper has one class an item; here an item's loss is the mean over its labels. The share grows from 0 in the
first epoch, over the share `ramp` of the epochs. The loss is the mean over the items that are left; the authors' code
divides this mean by their number once more.

Defaults: forget = 0.02 was chosen by validation on the features of VOC 2012 with an MLP head, with one yes per item and
with a quarter of the yes known, where 0.1 does harm; ramp = 0.1 was not searched.
"""

from __future__ import annotations

from torch import Tensor

from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, co_teaching_loss, kept, ramp_up
from partly.errors import within
from partly.method import About, Task

ABOUT = About(search={"forget": (0.0, 0.5), "ramp": (0.0, 1.0)}, in_papers=("Co-teaching",))


class CoTeaching(TwoNetworks):
    def __init__(self, task: Task, *, forget: float = 0.02, ramp: float = 0.1, predict: Predict = "mean") -> None:
        super().__init__(task, predict)
        within(0, 1, forget=forget, ramp=ramp)
        self.forget, self.ramp = forget, ramp

    def may_be_best(self, clock: Clock) -> bool:
        """Once items are left out."""
        return ramp_up(clock, self.ramp) > 0

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"items left out": 1 - kept(clock, self.forget, self.ramp)}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        return co_teaching_loss(f, g, z, kept(clock, self.forget, self.ramp))
