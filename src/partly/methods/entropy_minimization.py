"""Entropy minimization: unknown entries are pushed to the side they lean to.

When to use
    To reproduce a failure: with positives only it collapses, as the paper reports.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  +weight H(p)

Reference
    D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
    Positive Labels. ECCV 2022. The baseline "EntMin".

Known negatives
    Ordinary negatives. The entropy of unknown entries is minimized.

Differences from the paper
    The paper gives no formula; this is the loss "EM" with the opposite sign.

Defaults
    weight = 1; the paper gives none.
"""

from partly.losses import entropy_minimization as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(learns_from="no", in_papers=("EntMin",), learns_from_unknown=True)
