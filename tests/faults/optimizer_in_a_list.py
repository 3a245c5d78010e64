"""Optimizers kept in a list, where nobody finds them.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Their momentum is lost when a run is resumed.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_resume_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.all_optimizers = [self.optimizer]
        del self.optimizer

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = losses.bce(self.network(batch.x), batch.z).mean()
        self.step(loss, clock, *self.all_optimizers)
        return {"loss": loss.item()}
