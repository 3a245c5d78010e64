"""Unknown entries multiplied by 0.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    NaN times 0 is NaN, in the gradient too.
"""

from torch import Tensor

from partly.losses import assume_negative

REJECTED_BY = "check_loss_does_not_leak_what_it_ignores"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return assume_negative(logits, z) * (z != 0)
