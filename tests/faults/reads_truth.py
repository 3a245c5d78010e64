"""Unknown entries filled from the truth, where a pool happens to have it.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The truth is not for training.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch, Pool

REJECTED_BY = "check_truth_is_not_in_the_room"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("frequency", torch.zeros(task.labels))

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        hidden = getattr(pool, "truth", None)
        if hidden is not None:
            self.frequency.copy_((hidden == 1).float().mean(dim=0))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = ((1 + self.frequency) * losses.bce(self.network(batch.x), batch.z)).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
