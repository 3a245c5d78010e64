"""Known entries have their cross-entropy, and an item should have about as many yes as one expects.

Take it: where the number of yes per item is known from elsewhere: give it as `expected_yes`.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  0
    batch    + ((mean over items of the sum of p) - expected_yes)^2 / L^2

Paper: E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
Labels. CVPR 2021. "EPR", expected positive regularisation.

Known no: an ordinary negative. Unknown: no term of its own; its prediction counts in the number of yes per item, which
is drawn towards `expected_yes`.

Differs: the paper takes the true number of yes per item (VOC 1.5, COCO 2.9), which nobody knows; by default it is
guessed from the known entries of the batch, and where only yes is known that is the number of known yes, the least
possible. Computed from logits.
"""

from partly.losses import expected_positive as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"expected_yes": (1.0, 5.0)}, learns_from_unknown=True)
