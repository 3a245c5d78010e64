"""LSEP: every known positive of an item is ranked above every known negative, by a log-sum-exp over pairs.

When to use
    Only the order of labels within an item matters, and positives and negatives are known.

Formula
    item     log(1 + sum over its positives i and negatives j of exp(x_j - x_i))
    unknown  in no pair (as no with `unknown_as_no`)

Reference
    Y. Li, Y. Song, J. Luo. Improving Pairwise Ranking for Multi-label Image Classification. CVPR 2017.

Known negatives
    Ranked below every positive of the item. Unknown entries are in no pair, unless `unknown_as_no` treats them as
    negatives, which is needed where only positives are known.

Differences from the paper
    All pairs instead of a sample: the double sum is a product of two sums. The paper's second stage, which decides the
    number of labels, is left out. Training starts with `bce` for the share `warmup` of the epochs: Huynh and Elhamifar
    (CVPR 2020) start all their baselines from a logistic model.

Defaults
    warmup = 0.5 was chosen by validation, of 0 and 0.5. An epoch of the warm-up can be the best one.
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
