"""JoCoR: two networks with one joint loss that also rewards agreement; badly fitting items are dropped.

When to use
    As `co-teaching`, where two networks should converge to one opinion.

Formula
    item     (1 - agreement) (CE_f + CE_g) + agreement (KL(p_f, p_g) + KL(p_g, p_f)),   unknown as no
    the share r * forget of a batch with the largest joint loss is dropped,  r = min(1, epoch / (ramp * epochs))

Reference
    H. Wei, L. Feng, X. Chen, B. An. Combating Noisy Labels by Agreement: A Joint Training Method with
    Co-Regularization. CVPR 2020.

Known negatives
    Ordinary negatives. Unknown entries are treated as negatives.

Differences from the paper
    The paper has one class per item; here the joint loss of an item is the mean over its labels. The dropped share
    grows from 0 over the share `ramp` of the epochs.

Defaults
    forget and ramp are those of `co-teaching`; agreement = 0.1 is that of the authors' code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from partly import losses, selection
from partly.clock import Clock
from partly.co_training import Predict, TwoNetworks, mean_over_items, ramp_up, share_to_keep
from partly.errors import within
from partly.method import About, Task

ABOUT = About(search={"forget": (0.0, 0.5), "agreement": (0.05, 0.9), "ramp": (0.0, 1.0)}, in_papers=("JoCoR",))


class Jocor(TwoNetworks):
    def __init__(
        self,
        task: Task,
        *,
        forget: float = 0.02,
        agreement: float = 0.1,
        ramp: float = 0.1,
        predict: Predict = "mean",
    ) -> None:
        super().__init__(task, predict)
        within(0, 1, forget=forget, agreement=agreement, ramp=ramp)
        self.forget, self.agreement, self.ramp = forget, agreement, ramp

    def may_be_best(self, clock: Clock) -> bool:
        """Return True once items are dropped."""
        return ramp_up(clock, self.ramp) > 0

    def plan(self, clock: Clock) -> dict[str, float]:
        return {"items left out": 1 - share_to_keep(clock, self.forget, self.ramp)}

    def loss(self, f: Tensor, g: Tensor, z: Tensor, clock: Clock) -> Tensor | None:
        cross_entropies = losses.assume_negative(f, z) + losses.assume_negative(g, z)
        joint = (1 - self.agreement) * cross_entropies + self.agreement * divergence(f, g)
        fit = joint.detach().mean(dim=1)
        keep = share_to_keep(clock, self.forget, self.ramp)
        return mean_over_items(joint, selection.small_loss(fit, torch.ones_like(fit, dtype=torch.bool), keep))


def divergence(f: Tensor, g: Tensor) -> Tensor:
    """Return KL(p, q) + KL(q, p) of p = sigmoid(f) and q = sigmoid(g), which is (p - q) (f - g). [B, L]"""
    return (torch.sigmoid(f) - torch.sigmoid(g)) * (f - g)
