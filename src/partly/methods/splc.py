"""Unknown entries are taken for no, and for yes once the prediction is sure enough.

Take it: where only yes is known and a network is trained from pictures; watch what it takes for yes.

Formula:

    yes      -(1 - p')^gamma log p',   p' = sigmoid(x - margin)
    no       -p^gamma log(1 - p)
    unknown  -(1 - p)^gamma log p where p > threshold, after the share `start` of the epochs; else as no

Paper: Y. Zhang, Y. Cheng, X. Huang, F. Wen, R. Feng, Y. Li, Y. Guo. Simple and Robust Loss Design for Multi-Label
Learning with Missing Labels. arXiv 2112.07368, 2021. Self-paced loss correction "SPLC".

Known no: a focal negative, never taken for yes. Unknown: a focal negative, or from `start` on a focal yes where its
probability is above `threshold`. A known yes has its logit taken `margin` lower, a found one has not.

Differs: the mean and not the sum over entries. The authors start in their second epoch; here `start` is a share of the
schedule, 0.1 for the second of ten epochs.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.method import About


def loss(
    logits: Tensor,
    z: Tensor,
    clock: Clock,
    *,
    threshold: float = 0.6,
    margin: float = 1.0,
    gamma: float = 2.0,
    start: float = 0.1,
) -> Tensor:
    sure = threshold if clock.progress >= start else 1.0
    return losses.splc(logits, z, threshold=sure, margin=margin, gamma=gamma)


def may_be_best(clock: Clock, *, threshold: float, margin: float, gamma: float, start: float) -> bool:
    """Once a step could take something for yes; the last step of an epoch decides."""
    return replace(clock, step=clock.steps - 1).progress >= start


ABOUT = About(search={"threshold": (0.5, 0.9), "margin": (0.0, 2.0)}, may_be_best=may_be_best)
