"""Items are weighted by how far they lie from the mean of all.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    All items are asked for at once, and they may be more than fit into memory.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch, Pool

REJECTED_BY = "check_items_from_disk"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("centre", torch.zeros(task.items.shape))

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        self.centre.copy_(pool.items.take(slice(None)).float().mean(dim=0))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        weight = 1 + torch.tanh((batch.x - self.centre).flatten(1).norm(dim=1, keepdim=True))
        loss = (weight * losses.bce(self.network(batch.x), batch.z)).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
