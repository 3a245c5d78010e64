"""A loss that changes with the epochs: at first unknown entries are left out, at last they are taken for no.

Reference
    None, a healthy sibling of the planted faults.

Known negatives
    An ordinary negative. Unknown: a negative whose weight grows from 0 to 1.

Differences from the paper
    None.
"""

from typing import Literal

import torch
from torch import Tensor

from partly.clock import Clock
from partly.losses import assume_negative

REJECTED_BY = None


def loss(
    logits: Tensor, z: Tensor, clock: Clock, *, power: float = 1.0, shape: Literal["smooth", "step"] = "smooth"
) -> Tensor:
    weight = clock.progress**power if shape == "smooth" else float(clock.progress > 0.5)
    return torch.where(z == 0, weight, 1.0) * assume_negative(logits, z)
