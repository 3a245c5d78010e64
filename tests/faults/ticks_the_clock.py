"""A step that moves the clock.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Time belongs to the loop; where a run resumes is no longer where it was.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_resume_same_bits"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logs = super().update(batch, clock)
        clock.tick()
        return logs
