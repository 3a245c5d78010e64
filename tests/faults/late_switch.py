"""A plain counter that matters only after a hundred steps.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Too late for a short run to show it, and lost in a long one.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_all_state_is_saved"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.steps_done = 0

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        self.steps_done += 1
        loss_of = losses.bce if self.steps_done <= 100 else losses.assume_negative
        loss = loss_of(self.network(batch.x), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
