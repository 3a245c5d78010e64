"""Outliers cut off in place, for everybody.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    What `take` gives of a slice may be the caller's own memory.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Pool

REJECTED_BY = "check_pool_is_left_alone"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        pool.items.take(slice(None)).clamp_(-1.0, 1.0)
