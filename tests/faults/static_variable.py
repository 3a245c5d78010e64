"""A running mean of the loss that lives in the module.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The second run of a process starts with what the first one left behind.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_same_seed_same_bits"

_running = [1.0]


def loss(logits: Tensor, z: Tensor) -> Tensor:
    entries = bce(logits, z)
    _running[0] = 0.9 * _running[0] + 0.1 * entries.mean().item()
    return entries / _running[0]
