"""Batch normalization of the logits.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    A batch of one has no variance.
"""

from torch import Tensor, nn

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_finite_on_small_pools"


class Fault(LossMethod):
    starts_solved = False  # it is about something else

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.norm = nn.BatchNorm1d(task.labels)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = losses.bce(self.norm(self.network(batch.x)), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.network(x))
