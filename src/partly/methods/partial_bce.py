"""Partial BCE: cross-entropy on the known entries, weighted by how few labels of the item are known.

When to use
    Items differ much in how many labels are known. Otherwise it equals `bce`.

Formula
    g(k / L) times:  yes -log p,  no -log(1 - p),  unknown 0;   k known of L labels
    g(s) = alpha s^gamma + beta,  g(p0) = value,  g(1) = 1

Reference
    T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with Partial Labels.
    CVPR 2019. Equations 1 and 2.

Known negatives
    Ordinary negatives. Unknown entries have no loss; they lower the known share of the item, which raises the weight
    of its known entries.

Differences from the paper
    Equation 1 lacks its minus sign in print. alpha and beta are solved from g(p0) = value and g(1) = 1; the paper
    rounds them to -4.45 and 5.45 (`paper_rounding=True`). An item without known entries has no loss, even where g(0)
    would be infinite (gamma < 0).

Defaults
    The paper's. If the same share of every item is known, g is a constant factor, which AdamW ignores.
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
