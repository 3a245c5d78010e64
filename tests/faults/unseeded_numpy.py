"""Label noise from a generator that nobody seeded.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    `default_rng()` starts somewhere else in every run.
"""

import numpy as np
import torch
from torch import Tensor

from partly.losses import bce

REJECTED_BY = "check_same_seed_same_bits"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    noise = np.random.default_rng().normal(scale=0.1, size=tuple(z.shape))
    return bce(logits + torch.from_numpy(noise).to(logits), z)
