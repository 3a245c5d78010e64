"""Dropout that stays on when scoring.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `training=True` in place of `training=self.training`.
"""

from torch import Tensor
from torch.nn import functional as F

from partly import losses
from partly.method import LossMethod, Task

REJECTED_BY = "check_forward_has_no_side_effects"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def forward(self, x: Tensor) -> Tensor:
        return self.network.head(F.dropout(self.network.features(x), 0.5, training=True))
