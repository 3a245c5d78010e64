"""Unknown entries are taken for no; the weights of the network are kept small by the sum of their absolute values.

Take it: to compare with; a stronger weight decay does the same job for any method.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p)
    batch    + strength sum |w|

Paper: D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
Positive Labels. ECCV 2022. The baseline "L1R".

Known no: an ordinary negative. Unknown: the same as a known no.

Differs: the paper names the baseline without a formula; of the two readings, a penalty on weights or on predictions,
this is the first. Biases are left alone, and the optimiser's own weight decay stays as it is.

Defaults: the paper gives no strength; this one is mild, and more of it did better on the features of VOC 2012 with one
yes per item and a linear head.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from partly.errors import within
from partly.losses import assume_negative
from partly.method import About, LossMethod, Task

ABOUT = About(search={"strength": (1e-6, 1e-3)}, in_papers=("L1R",))


class L1R(LossMethod):
    def __init__(self, task: Task, *, strength: float = 3e-5) -> None:
        super().__init__(task, assume_negative, {})
        within(0, math.inf, strength=strength)
        self.strength = strength

    def penalty(self) -> Tensor:
        # By its tangent at the present weights: the same value and gradient in half the time.
        weights = (w.flatten() for w in self.network.parameters() if w.ndim > 1 and w.requires_grad)
        return self.strength * torch.stack([w.dot(w.detach().sign()) for w in weights]).sum()
