"""One score an item in place of one an entry.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The maximum over labels loses them.
"""

from torch import Tensor

from partly import losses
from partly.method import LossMethod, Task

REJECTED_BY = "check_scores_do_not_depend_on_batching"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x).amax(dim=1)
