"""Randomness from Python's `hash`, which differs from process to process.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `hash` of a text is salted; `clock.rng` is not.
"""

import numpy as np

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_same_bits_in_other_processes"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        rng = np.random.default_rng(abs(hash(("weight", clock.epoch, clock.step))))
        loss = float(rng.uniform(0.5, 1.5)) * losses.bce(self.network(batch.x), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
