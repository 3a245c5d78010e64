"""The loss without its minus sign.

Reference
    None, a planted fault.

Known negatives
    Pushed up.

Differences from the paper
    What should become small becomes large.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_learns"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return bce(-logits, z)
