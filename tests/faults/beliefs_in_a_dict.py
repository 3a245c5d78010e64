"""What each item was believed to be, in a dictionary by position.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The dictionary is in no checkpoint.
"""

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_resume_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.past: dict[int, Tensor] = {}

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        past = torch.stack([self.past.get(i, torch.zeros(logits.shape[1])) for i in batch.index.tolist()])
        loss = (losses.bce(logits, batch.z) + 0.1 * (logits - past) ** 2).mean()
        self.past |= dict(zip(batch.index.tolist(), logits.detach(), strict=True))
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
