"""The mean over the known entries of a batch.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    A batch of which nothing is known divides 0 by 0.
"""

from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_finite_when_little_is_known"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return bce(logits, z).sum() / (z != 0).sum()
