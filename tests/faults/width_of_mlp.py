"""A second read-out that counts on the features of one head.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Other heads have features of another width.
"""

import torch
from torch import nn

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_heads"


class Fault(LossMethod):
    starts_solved = False  # it is about something else

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.second = nn.Parameter(torch.zeros(16, task.labels))
        self.second_optimizer = task.make_optimizer([self.second])

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        features = self.network.features(batch.x)
        loss = losses.bce(self.network.head(features) + features @ self.second, batch.z).mean()
        self.step(loss, clock, self.optimizer, self.second_optimizer)
        return {"loss": loss.item()}
