"""Expected positive regularization (EPR): known entries, and the expected number of labels per item.

When to use
    The number of positives per item is known: give it as `expected_yes`.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  0
    batch    + ((mean over items of the sum of p) - expected_yes)^2 / L^2

Reference
    E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
    Labels. CVPR 2021. "EPR", expected positive regularization.

Known negatives
    Ordinary negatives. Unknown entries have no term of their own, but count in the number of positives per item.

Differences from the paper
    The paper uses the true number of positives per item (VOC 1.5, COCO 2.9), which is unknown in practice. By default
    it is estimated from the known entries of the batch; with positives only, that is the number of known positives, a
    lower bound. The loss is computed from logits.

Defaults
    expected_yes is estimated.
"""

from partly.losses import expected_positive as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"expected_yes": (1.0, 5.0)}, learns_from_unknown=True)
