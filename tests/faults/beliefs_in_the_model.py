"""A number for every training entry, in a buffer of the model.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `register_buffer` in place of `keep`, so that whoever loads the model loads the training state too.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_model_is_without_training_state"


class Fault(LossMethod):
    entry_bytes = 4

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("past", torch.zeros(len(task.items), task.labels))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        loss = (losses.bce(logits, batch.z) + 0.1 * (logits - self.past[batch.index]) ** 2).mean()
        self.past[batch.index] = logits.detach()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
