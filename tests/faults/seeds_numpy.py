"""Draws from numpy's global generator, seeded anew at each step.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The program around it gets other numbers than it would without.
"""

import numpy as np

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_global_randomness_is_left_alone"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        np.random.seed(clock.epoch * clock.steps + clock.step)  # noqa: NPY002
        loss = float(np.random.uniform(0.5, 1.5)) * losses.bce(self.network(batch.x), batch.z).mean()  # noqa: NPY002
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
