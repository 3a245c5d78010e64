"""A list of all losses so far.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    It grows for as long as the run lasts, and no checkpoint holds it.
"""

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_all_state_is_saved"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.history: list[float] = []

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logs = super().update(batch, clock)
        self.history.append(logs["loss"])
        return logs
