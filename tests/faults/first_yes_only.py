"""The first yes of an item counts, the others do not.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    Which yes is the first depends on the order of the labels.
"""

import torch
from torch import Tensor

from partly.losses import assume_negative

REJECTED_BY = "check_loss_is_equivariant"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    first = torch.zeros_like(z).scatter_(1, z.argmax(dim=1, keepdim=True), z.amax(dim=1, keepdim=True).clamp(min=0))
    return assume_negative(logits, first)
