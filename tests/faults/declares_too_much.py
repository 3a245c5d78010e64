"""A byte for every entry, and four declared.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `entry_bytes` counts more than the declared state keeps, so runs are refused that would fit.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import EntryState, LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_entry_bytes"


class Fault(LossMethod):
    entry_state = (EntryState("seen", torch.int8),)
    entry_bytes = 3

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        self.seen[batch.index] = batch.z
        return super().update(batch, clock)
