"""A setting that has to be given.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `weight` has no default.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_settings"


def loss(logits: Tensor, z: Tensor, *, weight: float) -> Tensor:
    return weight * bce(logits, z)
