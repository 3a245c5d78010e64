"""A setting that has to be given.

Paper: none, a planted fault.

Known no: an ordinary negative.

Differs: `weight` has no default.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_settings"


def loss(logits: Tensor, z: Tensor, *, weight: float) -> Tensor:
    return weight * bce(logits, z)
