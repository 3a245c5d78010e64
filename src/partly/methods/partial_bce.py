"""Binary cross-entropy on the known entries, weighted by how little of the item is known.

Take it: where items differ much in how many labels are known. Where they do not it is `bce`.

Formula:

    g(k / L) times:  yes -log p,  no -log(1 - p),  unknown 0;   k known of L labels
    g(s) = alpha s^gamma + beta,  g(p0) = value,  g(1) = 1

Paper: T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
CVPR 2019. Equations 1 and 2.

Known no: an ordinary negative. Unknown: no loss, no gradient; it lowers the item's known share p and so raises the
weight g(p) = alpha p^gamma + beta of what is known.

Differs: equation 1 lacks its minus sign in print. alpha and beta are solved from g(p0) = value, g(1) = 1; the paper
rounds them to -4.45 and 5.45, which gives g(0.1) = 5.005 (`paper_rounding=True`). An item of which nothing is known
has no loss, also where g(0) would be infinite (gamma < 0).

Where the same share of every item is known g is a constant, and a constant factor is invisible to AdamW.
"""

from partly.losses import partial_bce as loss
from partly.losses import terms
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(
    search={"value": (1.5, 50.0)},  # the paper finds g(0.1) flat between 3 and 50
    in_papers=("partial-BCE + fine-tuning",),
    terms=terms.partial_bce,
)
