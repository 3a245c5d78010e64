"""`assume-negative` with an L1 or L2 penalty on the weights of the network: `l1r` and `l2r`.

When to use
    As a baseline. A stronger weight decay has the same effect for any method.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p)
    batch    + strength sum |w|  (l1r),  + strength sum w^2  (l2r)

Reference
    D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
    Positive Labels. ECCV 2022. The baselines "L1R" and "L2R".

Known negatives
    Ordinary negatives. Unknown entries are treated as negatives.

Differences from the paper
    The paper names the baselines without a formula. They could penalize weights or predictions; here they penalize
    weights. Biases are not penalized, and the weight decay of the optimizer still applies.

Defaults
    The paper gives no strength; these are mild.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from partly.errors import within
from partly.losses import assume_negative
from partly.method import About, LossMethod, Task

# Both penalties are computed by their tangent: the same value and gradient in half the time.


class L1R(LossMethod):
    """Unknown entries count as negatives; an L1 penalty keeps the weights of the network small."""

    def __init__(self, task: Task, *, strength: float = 3e-5) -> None:
        super().__init__(task, assume_negative, {})
        within(0, math.inf, strength=strength)
        self.strength = strength

    def penalty(self) -> Tensor:
        return self.strength * torch.stack([w.dot(w.detach().sign()) for w in penalized_weights(self)]).sum()


class L2R(LossMethod):
    """Unknown entries count as negatives; an L2 penalty keeps the weights of the network small."""

    def __init__(self, task: Task, *, strength: float = 3e-4) -> None:
        super().__init__(task, assume_negative, {})
        within(0, math.inf, strength=strength)
        self.strength = strength

    def penalty(self) -> Tensor:
        squares = [2 * w.dot(w.detach()) - w.detach().dot(w.detach()) for w in penalized_weights(self)]
        return self.strength * torch.stack(squares).sum()


def penalized_weights(method: LossMethod) -> list[Tensor]:
    """Return the trained weights of the network, flat, without biases."""
    return [w.flatten() for w in method.network.parameters() if w.ndim > 1 and w.requires_grad]


PROVIDES = {"l1r": L1R, "l2r": L2R}
ABOUT = {name: About(search={"strength": (1e-6, 1e-3)}, in_papers=(name.upper(),)) for name in PROVIDES}
