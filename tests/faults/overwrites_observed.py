"""Beliefs that forget what people said.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The network's opinion replaces known entries too.
"""

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.method import EntryState, LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_beliefs"


class Fault(LossMethod):
    entry_state = (EntryState("opinion", fill=0.5, belief=torch.float32),)

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logs = super().update(batch, clock)
        with torch.no_grad():
            self.opinion[batch.index] = torch.sigmoid(self.network(batch.x))
        return logs

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        return self.opinion[rows]
