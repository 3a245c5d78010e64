"""Unknown entries count as negatives at a small constant weight.

When to use
    Only positives are known and you want a solved linear model. The weight says how far a missing label is a negative.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -weight log(1 - p)

Reference
    D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
    Positive Labels. ECCV 2022. The baseline "DW".

Known negatives
    Ordinary negatives, at weight 1. Unknown entries are negatives at weight `weight`.

Differences from the paper
    The paper names the baseline without a formula or a weight; this is our reading of the name.

Defaults
    weight = 0.05 was chosen by validation with one positive per item.
"""

from partly.losses import down_weight as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"weight": (0.01, 1.0)}, in_papers=("DW",), terms=terms.down_weight)
