"""A temperature measured on the training items and kept in a plain attribute.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    A loaded model has no training items and measures another one.
"""

from torch import Tensor

from partly import losses
from partly.method import LossMethod, Task

REJECTED_BY = "check_loads_from_weights_alone"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.temperature = 1.0 + task.items.statistics.scale.mean().item()

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x) / self.temperature
