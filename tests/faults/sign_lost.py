"""Observations that lost their sign.

Reference
    None, a planted fault.

Known negatives
    A yes.

Differences from the paper
    `z.abs()` makes a yes of every no.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_known_labels_matter"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return bce(logits, z.abs())
