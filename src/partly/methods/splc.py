"""Self-paced loss correction (SPLC): unknown entries count as positives once the prediction is confident.

When to use
    Only positives are known and a network is trained on images. Check which entries it takes as positives.

Formula
    yes      -(1 - p')^gamma log p',   p' = sigmoid(x - margin)
    no       -p^gamma log(1 - p)
    unknown  -(1 - p)^gamma log p where p > threshold, after the share `start` of the epochs; else as no

Reference
    Y. Zhang, Y. Cheng, X. Huang, F. Wen, R. Feng, Y. Li, Y. Guo. Simple and Robust Loss Design for Multi-Label
    Learning with Missing Labels. arXiv 2112.07368, 2021. Self-paced loss correction "SPLC".

Known negatives
    Focal negatives, never taken as positives. Only known positives have a margin.

Differences from the paper
    The mean over entries, not the sum. The authors start in their second epoch; here `start` is a share of the
    schedule, 0.1 for the second of ten epochs.

Defaults
    The paper's.
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
    """Return True once a step could relabel entries; the last step of an epoch decides."""
    return replace(clock, step=clock.steps - 1).progress >= start


ABOUT = About(search={"threshold": (0.5, 0.9), "margin": (0.0, 2.0)}, may_be_best=may_be_best)
