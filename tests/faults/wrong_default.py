"""A default that is not of its own type.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `power` says int, its default is 0.5.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_settings"


def loss(logits: Tensor, z: Tensor, *, power: int = 0.5) -> Tensor:
    return (bce(logits, z) + 1e-6) ** power
