"""A default that is not of its own type.

Paper: none, a planted fault.

Known no: an ordinary negative.

Differs: `power` says int, its default is 0.5.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_settings"


def loss(logits: Tensor, z: Tensor, *, power: int = 0.5) -> Tensor:
    return (bce(logits, z) + 1e-6) ** power
