"""An optimizer of its own.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The learning rate, the weight decay and the schedule of the task do not reach it.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_optimizers"


class Fault(LossMethod):
    starts_solved = False  # it is about something else

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = losses.bce(self.network(batch.x), batch.z).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return {"loss": loss.item()}
