"""Observations that lost their sign.

Paper: none, a planted fault.

Known no: a yes.

Differs: `z.abs()` makes a yes of every no.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_known_labels_matter"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return bce(logits, z.abs())
