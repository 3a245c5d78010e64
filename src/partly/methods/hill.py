"""Hill loss: unknown entries count as negatives unless the prediction is confidently positive.

When to use
    Only positives are known, and likely positives should be left alone without a schedule or memory per entry.

Formula
    yes      -(1 - p')^gamma log p',   p' = sigmoid(x - margin)
    no       -log(1 - p)
    unknown  (height - p) p^2

Reference
    Y. Zhang, Y. Cheng, X. Huang, F. Wen, R. Feng, Y. Li, Y. Guo. Simple and Robust Loss Design for Multi-Label
    Learning with Missing Labels. arXiv 2112.07368, 2021. The Hill loss.

Known negatives
    Ordinary cross-entropy; the hill is only for unknown entries. Its pull towards 0 fades as p approaches 1.

Differences from the paper
    The mean over entries, not the sum. The loss is computed from logits; the authors' logarithm of a sigmoid can be
    infinite.

Defaults
    The paper's.
"""

from partly.losses import hill as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"margin": (0.0, 2.0), "gamma": (0.5, 3.0)})
