"""Certainty as the only aim.

Reference
    None, a planted fault.

Known negatives
    Ignored.

Differences from the paper
    The entropy of the scores is made small, whatever people said.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

REJECTED_BY = "check_known_labels_matter"


def loss(logits: Tensor, z: Tensor) -> Tensor:
    return F.softplus(logits) - logits * torch.sigmoid(logits)
