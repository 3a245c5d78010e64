"""Unknown entries are drawn towards "nobody knows" (probability one half); known ones have their cross-entropy.

Take it: where only yes is known, and ranking is what counts. It costs no more than cross-entropy. Calibrate before you
use its probabilities.

Formula:

    yes      -log p
    no       -log(1 - p)
    unknown  -alpha H(p),   H(p) = -p log p - (1 - p) log(1 - p)

Paper: D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label Learning with Single
Positive Labels. ECCV 2022. The entropy-maximization loss "EM".

Known no: an ordinary negative. Unknown: -alpha H(p), the entropy of the prediction, which is to be large.

Differs: computed from logits, without the 1e-5 that the authors' code adds inside the logarithm, and with known no's,
which the paper has not.

Defaults: alpha = 0.05 was chosen by validation on the features of VOC 2012 with one yes per item and a linear head; the
paper fine-tunes a whole network with 0.2 on VOC and 0.1 on COCO.

Probabilities come out too high, since nothing says no: rank by them, or ask more than 0.5 of a yes (the authors:
0.75).
"""

from __future__ import annotations

from torch import Tensor

from partly import losses
from partly.method import About

ABOUT = About(search={"alpha": (0.02, 0.5)}, in_papers=("EM loss",), learns_from_unknown=True)


def loss(logits: Tensor, z: Tensor, *, alpha: float = 0.05) -> Tensor:
    return losses.entropy_maximization(logits, z, alpha=alpha)
