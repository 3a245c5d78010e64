"""Binary cross-entropy on the known entries; unknown ones are ignored.

Take it: where both yes and no are known and entries are known by chance. Of labels without a known no it learns nothing
but yes.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  0

Paper: T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
CVPR 2019. The baseline "BCE": equation 1 with g = 1.

Known no: an ordinary negative. Unknown: no loss, no gradient.

Differs: nothing. The sum over the known entries is divided by the number of labels L, as in the paper, and not by
the number of known entries, as some re-implementations do.
"""

from partly.losses import bce as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(
    aliases=("logistic", "masked-bce"),
    in_papers=("BCE loss", "BCE ResNet-101 WELDON", "LEML"),  # what Hsieh et al. 2021 call LEML has no low rank
    terms=terms.bce,
)
