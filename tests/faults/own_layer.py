"""A layer whose first weights come from wherever torch's generator is.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `nn.Linear` in place of `task.network`.
"""

import torch
from torch import Tensor, nn

from partly import losses
from partly.clock import Clock
from partly.method import Method, Task
from partly.pool import Batch

REJECTED_BY = "check_same_seed_same_bits"


class Fault(Method):
    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.network = task.network()
        with torch.random.fork_rng(devices=[]):
            self.residual = nn.Linear(task.labels, task.labels)
        self.optimizer = task.make_optimizer(self.parameters())

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        loss = losses.bce(self(batch.x), batch.z).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}

    def forward(self, x: Tensor) -> Tensor:
        logits = self.network(x)
        return logits + self.residual(logits)
