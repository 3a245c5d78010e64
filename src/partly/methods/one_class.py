"""Unknown entries count as positives at a small weight.

When to use
    Almost all known entries are negatives, as below coarse labels.

Formula
    yes      -log p
    no       -log(1 - p)
    unknown  -weight log p

Reference
    C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
    Pseudo-Label Approach. arXiv 2109.14676, 2021. Equation 2, the baseline "One-Class Classification", after H.-F. Yu,
    H.-Y. Huang, I. S. Dhillon, C.-J. Lin. A Unified Algorithm for One-Class Structured Matrix Factorization with Side
    Information. AAAI 2017.

Known negatives
    Ordinary negatives, at weight 1.

Differences from the paper
    The network is the chosen head, as in the first paper, and not a matrix factorization.

Defaults
    The paper gives no weight; weight = 0.03 was chosen by validation with coarse labels.
"""

from __future__ import annotations

from torch import Tensor

from partly.losses import terms
from partly.losses.basic import weighted_cross_entropy
from partly.method import About

__all__ = ["ABOUT", "loss"]

ABOUT = About(search={"weight": (0.01, 1.0)}, in_papers=("One-Class Classification",), terms=terms.one_class)


def loss(logits: Tensor, z: Tensor, *, weight: float = 0.03) -> Tensor:
    """Cross-entropy with every unknown entry as a positive, at `weight`. [B, L]"""
    return weighted_cross_entropy(logits, *terms.one_class(z, weight=weight, dtype=logits.dtype))
