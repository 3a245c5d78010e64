"""A linear head: logits straight from the features.

Under a loss that is a weighted cross-entropy of each entry (`bce`, `assume-negative`, ...) it is not trained step by
step but solved, with a strength of regularisation that folds over the training items choose; `solve` = false trains it
like every other head.
"""

from __future__ import annotations

from torch import nn

from partly.networks.members import Members


def head(inputs: int, labels: int, *, solve: bool = True) -> tuple[nn.Module, nn.Module]:
    return Members({"linear": nn.Identity()}, {"linear": inputs}), nn.Linear(inputs, labels)
