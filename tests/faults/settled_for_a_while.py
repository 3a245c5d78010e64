"""Only its second epoch may not be chosen.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    A phase that is there, gone, and there again.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task

REJECTED_BY = "check_settled"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def may_be_best(self, clock: Clock) -> bool:
        return clock.epoch != 1
