"""Unknown entries have a small probability as their target.

When to use
    As `label-smoothing`, where known entries can be trusted.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  CE(p, smoothing)

Reference
    D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
    Positive Labels. ECCV 2022. The baseline "N-LS".

Known negatives
    Ordinary negatives, not smoothed.

Differences from the paper
    The paper names the baseline without a formula. Here only unknown entries are smoothed.

Defaults
    smoothing = 0.1; the paper gives none.
"""

from partly.losses import negative_label_smoothing as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"smoothing": (0.02, 0.5)}, in_papers=("N-LS",), terms=terms.negative_label_smoothing)
