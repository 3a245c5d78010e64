"""Its epochs may be chosen once it was asked often enough.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Who goes on from a checkpoint was asked less often.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task

REJECTED_BY = "check_settled"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.asked = 0

    def may_be_best(self, clock: Clock) -> bool:
        self.asked += 1
        return self.asked > 2
