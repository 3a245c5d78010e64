"""Beliefs that forget what people said.

Paper: none, a planted fault.

Known no: an ordinary negative.

Differs: the network's opinion replaces known entries too.
"""

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_beliefs"


class Fault(LossMethod):
    entry_bytes = 4

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.keep("opinion", 0.5)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logs = super().update(batch, clock)
        with torch.no_grad():
            self.opinion[batch.index] = torch.sigmoid(self.network(batch.x))
        return logs

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        return self.opinion[rows]
