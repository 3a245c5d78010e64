"""Entropy maximization (EM): unknown entries are drawn towards probability one half.

When to use
    Only positives are known, and the ranking matters. The cost is that of cross-entropy. Calibrate before you use the
    probabilities.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -alpha H(p),   H(p) = -p log p - (1 - p) log(1 - p)

Reference
    D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
    Positive Labels. ECCV 2022. The entropy-maximization loss "EM".

Known negatives
    Ordinary negatives. The entropy of unknown entries is maximized.

Differences from the paper
    The loss is computed from logits, without the 1e-5 that the authors' code adds inside the logarithm. The paper has
    no known negatives. Probabilities come out too high, since no term pulls them down: rank by them, or raise the
    threshold (the authors use 0.75).

Defaults
    alpha = 0.05 was chosen by validation with one positive per item and a linear head. The paper fine-tunes a network
    with 0.2 on VOC and 0.1 on COCO.
"""

from __future__ import annotations

from torch import Tensor

from partly import losses
from partly.method import About

ABOUT = About(search={"alpha": (0.02, 0.5)}, in_papers=("EM loss",), learns_from_unknown=True)


def loss(logits: Tensor, z: Tensor, *, alpha: float = 0.05) -> Tensor:
    return losses.entropy_maximization(logits, z, alpha=alpha)
