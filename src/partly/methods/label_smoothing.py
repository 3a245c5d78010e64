"""Unknown entries are taken for no, and all targets are smoothed.

Take it: where only yes is known and you want one step up from `assume-negative` that never does much harm.

Formula:

    yes      CE(p, 1 - smoothing)
    no       CE(p, smoothing)
    unknown  CE(p, smoothing)

Paper: E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
Labels. CVPR 2021. The baseline "AN-LS".

Known no: smoothed, as a known yes is: its target is `smoothing`. Unknown: the same as a known no.

Differs: computed from logits, without the 1e-5 that the authors' code adds inside the logarithm.
"""

from partly.losses import label_smoothing as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"smoothing": (0.02, 0.3)}, in_papers=("LS",), terms=terms.label_smoothing)
