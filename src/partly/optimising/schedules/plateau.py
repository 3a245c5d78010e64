"""Times `gamma` whenever the score of the validation part has not risen for more than `patience` epochs."""

from __future__ import annotations

import math

from partly.clock import Clock
from partly.errors import within

NEEDS_VALIDATION = True


def rate(clock: Clock, lr: float, *, gamma: float = 0.1, patience: int = 2) -> float:
    within(0, 1, gamma=gamma)
    within(0, math.inf, patience=patience)
    best, waited, times = -math.inf, 0, 0
    # Of the epochs that this clock counts: who trains in phases has one for each.
    for score in clock.scores[max(0, len(clock.scores) - clock.epoch) :]:
        waited += 1
        if score is not None and score > best:  # where it is not defined, nothing has risen
            best, waited = score, 0
        if waited > patience:
            waited, times = 0, times + 1
    return float(lr * gamma**times)
