"""Scores centred by a running mean that scoring itself moves.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Who is scored first changes the score of who comes later.
"""

import torch
from torch import Tensor

from partly import losses
from partly.method import LossMethod, Task

REJECTED_BY = "check_forward_has_no_side_effects"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        self.register_buffer("centre", torch.zeros(task.labels))

    def forward(self, x: Tensor) -> Tensor:
        logits = self.network(x)
        self.centre.mul_(0.9).add_(0.1 * logits.detach().mean(dim=0))
        return logits - self.centre
