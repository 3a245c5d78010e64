"""Mixing items with a generator seeded from the time of day.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    No two runs mix the same items.
"""

import time

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_same_seed_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        generator = torch.Generator().manual_seed(time.time_ns())
        partner = torch.randperm(len(batch.x), generator=generator)
        loss = losses.bce(self.network((batch.x + batch.x[partner]) / 2), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
