"""Losses: pure functions of logits [B, L] and z [B, L] (+1 yes, -1 no, 0 unknown).

z is checked: anything but -1, 0 and +1 is refused (NaN, -100, booleans and other types that cannot hold -1); floats
that are one of the three will do. A z of 0 and 1 alone is taken as it stands, unknown and yes, as where only yes is
known: it cannot be told from targets in which 0 means no, so make z of such by 2 * y - 1. Compiled code is not checked.

Each returns a tensor whose mean is the loss: entries that do not count are 0 and stay in the mean, so a batch is
divided by B x L as in the papers. All start from logits and stay finite for any finite logit. Entries that do not count
are taken out before anything is computed on them, so neither value nor gradient can leak.

`basic` is binary cross-entropy on what is known or taken for no, `unknown` holds what gives unknown entries a term of
their own, `focusing` what weighs an entry by how wrong it is, `ranking` what compares the entries of an item.
"""

from partly.losses.basic import assume_negative, bce, cross_entropy, partial_bce
from partly.losses.focusing import asymmetric, focal, hill, partial_asymmetric, splc
from partly.losses.ranking import lsep, rank_net
from partly.losses.terms import normaliser
from partly.losses.unknown import (
    binary_entropy,
    count_penalty,
    down_weight,
    entropy_maximization,
    entropy_minimization,
    expected_positive,
    generalized_robust,
    label_smoothing,
    large_loss,
    negative_label_smoothing,
    weak_assume_negative,
    yes_per_item,
)

__all__ = [
    "assume_negative",
    "asymmetric",
    "bce",
    "binary_entropy",
    "count_penalty",
    "cross_entropy",
    "down_weight",
    "entropy_maximization",
    "entropy_minimization",
    "expected_positive",
    "focal",
    "generalized_robust",
    "hill",
    "label_smoothing",
    "large_loss",
    "lsep",
    "negative_label_smoothing",
    "normaliser",
    "partial_asymmetric",
    "partial_bce",
    "rank_net",
    "splc",
    "weak_assume_negative",
    "yes_per_item",
]
