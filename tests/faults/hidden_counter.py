"""A warm-up that counts its steps in a plain attribute.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    No checkpoint holds `steps_done`; a resumed run warms up again.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_resume_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.steps_done = 0

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        self.steps_done += 1
        loss = min(1.0, self.steps_done / 10) * losses.assume_negative(self.network(batch.x), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
