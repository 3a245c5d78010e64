"""Unknown entries are taken for no, at a constant small weight.

Take it: where only yes is known and a solved linear model is wanted: one number says how far a missing yes is a no.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  -weight log(1 - p)

Paper: D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
Positive Labels. ECCV 2022. The baseline "DW".

Known no: an ordinary negative, at weight 1. Unknown: a no at weight `weight`.

Differs: the paper names the baseline and gives neither formula nor weight; this is our reading of the name.

Defaults: weight = 0.05 was chosen by validation on the features of VOC 2012 with one yes per item and a linear head.
"""

from partly.losses import down_weight as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"weight": (0.01, 1.0)}, in_papers=("DW",), terms=terms.down_weight)
