"""Noise added to the items as they come.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Pictures come as whole numbers from 0 to 255.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_pictures"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = losses.bce(self.network(batch.x + 0.1 * torch.randn_like(batch.x)), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
