"""Beliefs that are always those of all items.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `rows` is not heard, so a file of beliefs, written in blocks, has too many of them.
"""

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.method import EntryState, LossMethod, Task
from partly.pool import Pool

REJECTED_BY = "check_beliefs"


class Fault(LossMethod):
    entry_state = (EntryState("believed", fill=0.5, belief=torch.float32),)

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        for batch in pool.in_order():
            self.believed[batch.index] = torch.where(batch.z == 0, 0.5, (batch.z > 0).float())

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        return self.believed
