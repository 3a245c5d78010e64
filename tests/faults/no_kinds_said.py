"""A mean of the features of each label's known yes, to which items are compared; that it needs features is not said.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `kinds` is left as it is, features and pictures, but a picture has no such mean.
"""

import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_pictures"


class Fault(LossMethod):
    starts_solved = False  # it is about something else

    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("mean", torch.zeros(task.labels, task.items.shape[0]))

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        said = self.network.features[0](batch.x)
        self.mean += 0.01 * (batch.z == 1).float().T @ said / len(said)
        return super().update(batch, clock)

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        return self.network(x, z) + self.network.features[0](x) @ self.mean.T
