"""The logarithm of a probability.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.

Differences from the paper
    The probability of a strong no is 0, and its logarithm infinite; `logsigmoid` is finite.
"""

import torch
from torch import Tensor

REJECTED_BY = "check_finite_for_extreme_logits"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    probability = torch.sigmoid(torch.where(z < 0, -logits, logits))
    return torch.where(z == 0, 0.0, -torch.log(torch.where(z == 0, 0.5, probability)))
