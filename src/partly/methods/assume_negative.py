"""Binary cross-entropy with every unknown entry taken for a no.

Take it: as the baseline that every other method must beat, and where nearly everything that nobody mentioned really is
absent. Average precision suffers less than probabilities do: these come out far too low.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  -log(1 - p)

Paper: E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
Labels. CVPR 2021. The baseline "AN": equation 3.

Known no: an ordinary negative. Unknown: the same as a known no.

Differs: computed from logits, without the 1e-5 that the authors' code adds inside the logarithm.
"""

from partly.losses import assume_negative as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(in_papers=("AN loss",), terms=terms.assume_negative)
