"""Binary cross-entropy that treats every unknown entry as a negative.

When to use
    As the baseline that every other method must beat, and where almost every unmentioned label is really absent. The
    ranking suffers less than the probabilities, which come out far too low.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p)

Reference
    E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
    Labels. CVPR 2021. Equation 3, the baseline "AN".

Known negatives
    Ordinary negatives. Unknown entries are treated the same.

Differences from the paper
    The loss is computed from logits, without the 1e-5 that the authors' code adds inside the logarithm.

Defaults
    No settings.
"""

from partly.losses import assume_negative as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(in_papers=("AN loss",), terms=terms.assume_negative)
