"""The labels of the last item seen, without a copy.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The buffer shares memory with the batch.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_pool_is_left_alone"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("last", torch.zeros(task.labels, dtype=torch.int8))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        self.last = batch.z[-1]
        return super().update(batch, clock)
