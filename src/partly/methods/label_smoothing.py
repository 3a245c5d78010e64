"""`assume-negative` with smoothed targets.

When to use
    Only positives are known, and you want a safe improvement over `assume-negative`.

Formula
    yes      CE(p, 1 - smoothing)
    no       CE(p, smoothing)
    unknown  CE(p, smoothing)

Reference
    E. Cole, O. Mac Aodha, T. Lorieul, P. Perona, D. Morris, N. Jojic. Multi-Label Learning from Single Positive
    Labels. CVPR 2021. The baseline "AN-LS".

Known negatives
    Smoothed as positives are: the target is `smoothing`. Unknown entries are treated the same.

Differences from the paper
    The loss is computed from logits, without the 1e-5 that the authors' code adds inside the logarithm.

Defaults
    smoothing = 0.1 is the paper's.
"""

from partly.losses import label_smoothing as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"smoothing": (0.02, 0.3)}, in_papers=("LS",), terms=terms.label_smoothing)
