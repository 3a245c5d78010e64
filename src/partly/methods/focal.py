"""Focal loss: entries that fit well count less; unknown entries count as negatives.

When to use
    Labels are complete and most entries are easy. Hidden positives are emphasized most, which hurts with missing
    labels.

Formula
    yes      -(1 - p)^gamma log p
    no       -p^gamma log(1 - p)
    unknown  as no

Reference
    T.-Y. Lin, P. Goyal, R. Girshick, K. He, P. Dollár. Focal Loss for Dense Object Detection. ICCV 2017. Equation 4,
    for each label, without the class weight alpha.

Known negatives
    Focused as all entries are. Unknown entries are treated the same.

Differences from the paper
    The mean over entries, not the sum.

Defaults
    gamma = 2 is the paper's.
"""

from partly.losses import focal as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"gamma": (0.5, 4.0)}, in_papers=("Focal loss",))
