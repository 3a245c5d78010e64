"""What was last said of every training entry, kept in the model and called a part that may grow.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `grown` is for parts with a bound, such as landmarks; this one has a number for every item and label.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_model_is_without_training_state"


class Fault(LossMethod):
    entry_bytes = 1
    variable_size_modules = ("said",)

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("said", torch.zeros(len(task.items), task.labels, dtype=torch.int8))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        self.said[batch.index] = batch.z
        return super().update(batch, clock)
