"""Scenarios: from the truth to labels that are only partly known, as pure functions of (truth, seed).

`truth` is `Labels`, or an array of 1 yes, 0 no, NaN unknown. What it does not know stays unknown, names and ids
stay, and what is sparse stays sparse.

Every entry has a number in [0, 1) that depends on the scenario, the seed, its row and its column, and on nothing
else; so has every item, where whole items are chosen. The smallest numbers are chosen. So the first items
get the same labels however many more there are (unless a count over all items is asked for), and what is
known at one share is known at every larger one.
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
