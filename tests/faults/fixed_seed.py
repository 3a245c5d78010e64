"""First weights that are the same for every seed.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The network is made under a seed of its own.
"""

import torch
from torch import nn

from partly import losses
from partly.method import LossMethod, Task

REJECTED_BY = "check_other_seed_other_weights"


class Fault(LossMethod):
    def __init__(self, task: Task) -> None:
        super().__init__(task, losses.bce, {})
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.reset()

    def reset(self) -> None:
        for module in self.network.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()
