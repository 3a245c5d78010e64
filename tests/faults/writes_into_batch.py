"""Unknown entries set to no in place.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `batch.z` belongs to the pool.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_pool_is_left_alone"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        batch.z[batch.z == 0] = -1
        return super().update(batch, clock)
