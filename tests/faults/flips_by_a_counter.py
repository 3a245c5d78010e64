"""Every other batch of pictures is mirrored by the method itself; which one, a plain attribute counts.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    A run that goes on counts anew. Features are left alone, so only a run on pictures shows it.
"""

from dataclasses import replace

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_picture_files"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.batches = 0

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        if batch.x.ndim == 4:
            self.batches += 1
            batch = replace(batch, x=batch.x.flip(3) if self.batches % 2 else batch.x)
        return super().update(batch, clock)
