"""A number for every entry that nobody was told of.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `entry_state` does not declare what is registered, so no run is refused in time.
"""

from partly import losses
from partly.clock import Clock
from partly.method import EntryState, LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_entry_bytes"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_entry_state(EntryState("past"))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        past = self.past[batch.index]
        loss = (losses.bce(logits, batch.z) + 0.1 * (logits - past) ** 2).mean()
        self.past[batch.index] = logits.detach()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
