"""Scenarios: pure functions of (truth, seed) that simulate partly known labels.

`truth` is `Labels`, or an array of 1 yes, 0 no, NaN unknown. Unknown entries stay unknown, names and ids are kept, and
sparse labels stay sparse.

Every entry, or every item where whole items are chosen, gets a random number that depends only on the scenario, the
seed and its position, and the smallest numbers are kept. So the first items get the same labels however many follow
(unless the scenario counts over all items), and entries known at one share are known at every larger one.
"""

from partly.scenarios.hiding import (
    coarse_only,
    dense,
    noisy,
    noisy_plus,
    one_yes_all_no,
    positives,
    propensity,
    single_positive,
    uniform,
)
from partly.scenarios.naming import kind, names, parse

__all__ = [
    "coarse_only",
    "dense",
    "kind",
    "names",
    "noisy",
    "noisy_plus",
    "one_yes_all_no",
    "parse",
    "positives",
    "propensity",
    "single_positive",
    "uniform",
]
