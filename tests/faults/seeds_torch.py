"""Noise under a global seed.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Every later draw of the step follows this seed instead of the loop's.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_global_randomness_is_left_alone"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        torch.manual_seed(clock.step)
        loss = losses.bce(self.network(batch.x + 0.1 * torch.randn(batch.x.shape)), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
