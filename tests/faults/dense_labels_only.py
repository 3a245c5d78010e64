"""Label frequencies computed from the pool's matrix as if it were always an array.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Sparse labels break it.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch, Pool

REJECTED_BY = "check_sparse_labels_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("weight", torch.ones(task.labels))

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        self.weight.copy_(1.0 + (torch.from_numpy(pool.labels.ternary().copy()) == 1).float().mean(dim=0))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = (self.weight * losses.bce(self.network(batch.x), batch.z)).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
