"""Linear warm-up over the share `warmup` of the run, then half a cosine down to 0."""

from __future__ import annotations

import math

from partly.clock import Clock
from partly.errors import within


def rate(clock: Clock, lr: float, *, warmup: float = 0.05) -> float:
    within(0, 1, warmup=warmup)
    # The middle of the step, so that neither the first nor the last step is wasted at rate 0.
    done = min(1.0, clock.progress + 0.5 / (clock.steps * clock.epochs))
    if done < warmup:
        return lr * done / warmup
    return lr * 0.5 * (1.0 + math.cos(math.pi * (done - warmup) / (1.0 - warmup))) if warmup < 1 else lr
