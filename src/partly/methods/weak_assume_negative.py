"""Unknown entries are taken for no, at such a weight that all of an item together weigh about one yes.

Take it: where only yes is known and there is no validation to choose a weight by.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p) / (L - 1)

Paper: E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
Labels. CVPR 2021. The baseline "WAN": weight 1 / (L - 1).

Known no: an ordinary negative, at weight 1. Unknown: a no at weight 1 / (L - 1).

Differs: computed from logits, without the 1e-5 that the authors' code adds inside the logarithm. The weight does not
depend on how many yes an item has, as in the paper. With a single label the weight is 1.
"""

from partly.losses import terms
from partly.losses import weak_assume_negative as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(in_papers=("WAN",), terms=terms.weak_assume_negative)
