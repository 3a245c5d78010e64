"""Label statistics computed when an epoch begins, and kept in a plain attribute.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    A run that resumes in the middle of an epoch goes on without them.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch, Pool

REJECTED_BY = "check_resume_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.weight = torch.ones(task.labels)

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        self.weight = 1 + sum((batch.z == 1).float().sum(dim=0) for batch in pool.in_order()) / len(pool)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = (self.weight * losses.bce(self.network(batch.x), batch.z)).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
