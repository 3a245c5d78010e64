"""A step that does not say how it went.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    There is nothing to watch, and nobody notices a loss that is NaN.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_logs"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        super().update(batch, clock)
        return {}
