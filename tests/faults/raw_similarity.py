"""Scores drawn towards those of similar items, by products of raw features.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Large features overflow; the network's own are standardised.
"""

import torch

from partly import losses
from partly.clock import Clock
from partly.method import LossMethod, Task
from partly.pool import Batch

REJECTED_BY = "check_finite_on_extreme_features"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        logits = self.network(batch.x)
        x = batch.x.flatten(1).float()
        smooth = torch.softmax(x @ x.T, dim=1) @ logits
        loss = (losses.bce(logits, batch.z) + 0.1 * (logits - smooth) ** 2).mean()
        self.step(loss, clock, self.optimizer)
        return {"loss": loss.item()}
