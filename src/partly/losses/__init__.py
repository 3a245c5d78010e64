"""Losses: pure functions of logits [B, L] and z [B, L] (+1 yes, -1 no, 0 unknown).

Each returns a tensor whose mean is the loss. Entries that do not count are 0 and stay in the mean, so a batch is
divided by B x L as in the papers. Losses are computed from logits and stay finite for any finite logit. Entries that do
not count are removed before anything is computed from them, so neither values nor gradients can leak.

z is validated: values other than -1, 0 and +1 are refused, and so are booleans and types that cannot hold -1. A z of 0
and 1 alone is read as unknown and yes; convert 0/1 targets by z = 2 * y - 1. Compiled code is not validated.

- `basic`: cross-entropy on known entries, optionally with unknown entries as negatives
- `unknown`: a separate term for unknown entries
- `focusing`: entries weighted by how wrong the prediction is
- `ranking`: comparisons between the entries of an item
"""

from partly.losses.basic import assume_negative, bce, cross_entropy, partial_bce
from partly.losses.focusing import asymmetric, focal, hill, partial_asymmetric, splc
from partly.losses.ranking import lsep, rank_net
from partly.losses.terms import normalization_coefficients
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
from partly.moved import make_getattr

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
    "normalization_coefficients",
    "partial_asymmetric",
    "partial_bce",
    "rank_net",
    "splc",
    "weak_assume_negative",
    "yes_per_item",
]

__getattr__ = make_getattr(__name__, {"normaliser": "normalization_coefficients"})
