"""The same rate throughout, after a linear warm-up over the share `warmup` of the run, where one is asked for."""

from __future__ import annotations

from partly.clock import Clock
from partly.errors import within


def rate(clock: Clock, lr: float, *, warmup: float = 0.0) -> float:
    within(0, 1, warmup=warmup)
    done = clock.progress + 0.5 / (clock.steps * clock.epochs)
    return lr * done / warmup if done < warmup else lr
