"""Scores relative to the mean of the batch.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The score of an item depends on who is scored with it.
"""

from torch import Tensor

from partly import losses
from partly.method import LossMethod, Task

REJECTED_BY = "check_scores_do_not_depend_on_batching"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def forward(self, x: Tensor) -> Tensor:
        logits = self.network(x)
        return logits - logits.mean(dim=0)
