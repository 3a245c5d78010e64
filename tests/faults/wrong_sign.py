"""The loss without its minus sign.

Paper: none, a planted fault.

Known no: pushed up.

Differs: what should become small becomes large.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_learns"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return bce(-logits, z)
