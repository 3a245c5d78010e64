"""Logits that are shifted from a solved start: untrained, the method does not score as the baseline.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    From a solved start, logits are shifted.
"""

from torch import Tensor

from partly.clock import Clock
from partly.losses import bce
from partly.method import Method, Task
from partly.pool import Batch

REJECTED_BY = "check_solved_start"


class LeavesItsStart(Method):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        logits: Tensor = self.network(x, z)
        return logits if self.task.config.start == "random" else logits + 1

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = bce(self.network(batch.x, batch.z), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
