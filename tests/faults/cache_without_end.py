"""A cache that keeps the noise of every step.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `lru_cache` without a limit, keyed by the time.
"""

from functools import cache

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock, seed_for
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_memory_does_not_grow"


@cache
def noise(progress: float, labels: int) -> Tensor:
    return torch.randn(labels, generator=torch.Generator().manual_seed(seed_for(str(progress))))


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x) + noise(clock.progress, self.task.labels)
        loss = losses.bce(logits, batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
