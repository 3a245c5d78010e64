"""Unknown entries count as negatives with weight 1 / (L - 1): together about as much as one positive.

When to use
    Only positives are known, and there is no validation set to choose a weight.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p) / (L - 1)

Reference
    E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
    Labels. CVPR 2021. The baseline "WAN".

Known negatives
    Ordinary negatives, at weight 1.

Differences from the paper
    The loss is computed from logits, without the 1e-5 that the authors' code adds inside the logarithm. As in the
    paper, the weight does not depend on the number of positives. With a single label it is 1.

Defaults
    No settings.
"""

from partly.losses import terms
from partly.losses import weak_assume_negative as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(in_papers=("WAN",), terms=terms.weak_assume_negative)
