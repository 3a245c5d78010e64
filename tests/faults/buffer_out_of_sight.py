"""A number for every training entry, in a buffer that is saved nowhere.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `persistent=False` without `keep`, so the buffer is neither of the model nor of the training state.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_resume_same_bits"


class Fault(LossMethod):
    entry_bytes = 4

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("past", torch.zeros(len(task.items), task.labels), persistent=False)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        loss = (losses.bce(logits, batch.z) + 0.1 * (logits - self.past[batch.index]) ** 2).mean()
        self.past[batch.index] = logits.detach()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
