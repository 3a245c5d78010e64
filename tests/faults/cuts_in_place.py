"""Logits cut off in place.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The caller's logits change under its hands.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_loss_is_pure"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return bce(logits.clamp_(-3.0, 3.0), z)
