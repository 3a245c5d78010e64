"""A loss weight drawn from Python's global generator.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `random.random()` depends on who drew before.
"""

import random

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_same_seed_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = (0.5 + random.random()) * losses.bce(self.network(batch.x), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
