"""Each known yes of an item is pushed above each known no of it, by the logarithm of a sum over all pairs.

Take it: where only the order of labels within an item counts, and both yes and no are known.

Formula:

    item     log(1 + sum over its yes i and no j of exp(x_j - x_i))
    unknown  in no pair (as no with `unknown_as_no`)

Paper: Y. Li, Y. Song, J. Luo. Improving Pairwise Ranking for Multi-label Image Classification. CVPR 2017. "LSEP".

Known no: what every yes of the item is to be above. Unknown: in no pair, so it does not count; with `unknown_as_no` the
same as a known no, which is what is left to do where only yes is known.

Differs: all pairs, not a sample of them: the double sum is a product of two. The paper's second stage, which decides
how many labels an item has, is left out. For a share of the epochs the network is first trained by `bce`: Huynh and
Elhamifar (CVPR 2020) start all their baselines from a logistic model.

Defaults: warmup = 0.5, of 0 and 0.5, by validation with a linear head on the features of VOC 2012 (10 and 50 % known)
and COCO (30 %), where the two were close. Validation may choose an epoch of the first part, which is `bce`.
"""

from __future__ import annotations

from torch import Tensor

from partly.clock import Clock
from partly.losses import bce, lsep
from partly.method import About

ABOUT = About(learns_from="no", search={"warmup": (0.0, 0.9)}, in_papers=("LSEP",))


def loss(logits: Tensor, z: Tensor, clock: Clock, *, warmup: float = 0.5, unknown_as_no: bool = False) -> Tensor:
    if clock.progress < warmup:
        return bce(logits, z)
    return lsep(logits, z, unknown_as_no=unknown_as_no)
