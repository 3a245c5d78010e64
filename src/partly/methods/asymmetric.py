"""Asymmetric loss (ASL): negatives that fit well are down-weighted, and ignored below a probability.

When to use
    Labels are complete and positives are rare. Not recommended where positives hide among unknown entries: the loss
    emphasizes exactly those.

Formula
    yes      -(1 - p)^gamma_yes log p
    no       -q^gamma_no log(1 - q),   q = max(p - clip, 0)
    unknown  as no

Reference
    T. Ridnik, E. Ben-Baruch, N. Zamir, A. Noy, I. Friedman, M. Protter, L. Zelnik-Manor. Asymmetric Loss For
    Multi-Label Classification. ICCV 2021.

Known negatives
    Focused and clipped as in the paper. Unknown entries are treated the same.

Differences from the paper
    The mean over entries, not the sum. The focusing weight is differentiated, as the formula says; the authors'
    training script does not do so. gamma_yes = 0 follows that script; the class in their code says 1.

Defaults
    gamma_no = 1 and clip = 0.2 were chosen by validation with one positive per item; the paper has 4 and 0.05.
"""

from __future__ import annotations

from torch import Tensor

from partly import losses
from partly.method import About

ABOUT = About(search={"gamma_yes": (0.0, 2.0), "gamma_no": (1.0, 6.0), "clip": (0.0, 0.2)}, in_papers=("ASL",))


def loss(logits: Tensor, z: Tensor, *, gamma_yes: float = 0.0, gamma_no: float = 1.0, clip: float = 0.2) -> Tensor:
    return losses.asymmetric(logits, z, gamma_yes=gamma_yes, gamma_no=gamma_no, clip=clip)
