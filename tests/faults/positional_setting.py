"""A setting that nobody can set by name.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `margin` stands before the star, so the catalogue does not see it.
"""

import torch
from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_settings"


def loss(logits: Tensor, z: Tensor, margin: float = 0.1) -> Tensor:
    return torch.relu(bce(logits, z) - margin)
