"""Times `gamma` after each of the epochs `at` (below 1: a share of all epochs), or after `every` so many of them."""

from __future__ import annotations

import math

from partly.clock import Clock
from partly.errors import within


def rate(
    clock: Clock, lr: float, *, gamma: float = 0.1, at: tuple[float, ...] = (0.5, 0.75), every: int | None = None
) -> float:
    within(0, 1, gamma=gamma)
    if every is not None:
        within(1, math.inf, every=every)
        return float(lr * gamma ** (clock.epoch // every))
    within(0, math.inf, **{f"at[{place}]": after for place, after in enumerate(at)})
    passed = [after for after in at if clock.epoch >= (after * clock.epochs if after < 1 else after)]
    return float(lr * gamma ** len(passed))
