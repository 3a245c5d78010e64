"""Unknown entries are pushed to whichever side they lean: their entropy is to be small.

Take it: to see it fail: with only yes known it collapses, as papers say.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  +weight H(p)

Paper: D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
Positive Labels. ECCV 2022. The baseline "EntMin".

Known no: an ordinary negative. Unknown: weight H(p), the entropy of the prediction.

Differs: the paper gives no formula; this is the loss "EM" with the opposite sign. With yes as the only known labels it
collapses, in the paper as here: it is here to be compared with.
"""

from partly.losses import entropy_minimization as loss
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(learns_from="no", in_papers=("EntMin",), learns_from_unknown=True)
