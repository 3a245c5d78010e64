"""Unknown entries are taken for yes, at a small weight.

Take it: where almost everything that is known is no, as below coarse labels.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  -weight log p

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021. The baseline "One-Class Classification", equation 2, after H.-F. Yu,
H.-Y. Huang, I. S. Dhillon, C.-J. Lin. A Unified Algorithm for One-Class Structured Matrix Factorization with Side
Information. AAAI 2017.

Known no: an ordinary negative, at weight 1, as a known yes is a positive. Unknown: a yes at weight `weight`. Meant for
labels of which almost nothing but no is known, as below coarse labels that are no.

Differs: the network is the chosen head, as in the first paper, not a matrix factorisation.

Defaults: the paper does not say the weight. By validation, one seed, coarse labels and 1/256 of the items wholly known
with an MLP head, P@1 at weight 0.01, 0.03 and 0.3: VOC 2012 0.38, 0.42, 0.43 (0.1: 0.35); COCO 0.55, 0.52, 0.45.
"""

from __future__ import annotations

from torch import Tensor

from partly.losses import terms
from partly.losses.basic import weighted_cross_entropy
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"weight": (0.01, 1.0)}, in_papers=("One-Class Classification",), terms=terms.one_class)


def loss(logits: Tensor, z: Tensor, *, weight: float = 0.03) -> Tensor:
    """Cross-entropy with every unknown entry taken for a yes, at `weight`. [B, L]"""
    return weighted_cross_entropy(logits, *terms.one_class(z, weight=weight, dtype=logits.dtype))
