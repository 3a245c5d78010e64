"""Binary cross-entropy on the known entries; unknown entries are ignored.

When to use
    Positives and negatives are both known, and entries are missing at random. A label without known negatives learns
    nothing but positives.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  0

Reference
    T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
    CVPR 2019. Equation 1 with g = 1, the baseline "BCE".

Known negatives
    Ordinary negatives. Unknown entries have no loss and no gradient.

Differences from the paper
    None. The sum over known entries is divided by the number of labels L, as in the paper, and not by the number of
    known entries, as in some reimplementations.

Defaults
    No settings.
"""

from partly.losses import bce as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(
    aliases=("logistic", "masked-bce"),
    in_papers=("BCE loss", "BCE ResNet-101 WELDON", "LEML"),  # Hsieh et al. 2021 call a full-rank model LEML
    terms=terms.bce,
)
