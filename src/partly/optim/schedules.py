"""Learning rate schedules.

A schedule is a function `name(clock, lr, *, settings...) -> float` decorated with `@schedule()`. It is pure: its only
state is the clock, which also holds the validation scores. `@schedule(About(needs_validation=True))` marks one that
uses them.
"""

from __future__ import annotations

import math

from partly.clock import Clock
from partly.errors import within
from partly.registry import About, Info, Registry

_SCHEDULES = Registry("schedule", Info)
schedule, discover, find = _SCHEDULES.register, _SCHEDULES.discover, _SCHEDULES.find


def needs_validation(name: str) -> bool:
    """Tell whether a schedule follows the scores of a validation part."""
    return find(name).about.needs_validation


@schedule()
def constant(clock: Clock, lr: float, *, warmup: float = 0.0) -> float:
    """The same rate throughout, after an optional linear warm-up over the share `warmup` of the run."""
    within(0, 1, warmup=warmup)
    progress = clock.progress + 0.5 / (clock.steps * clock.epochs)
    return lr * progress / warmup if progress < warmup else lr


@schedule()
def cosine(clock: Clock, lr: float, *, warmup: float = 0.05) -> float:
    """Linear warm-up over the share `warmup` of the run, then a half cosine down to 0."""
    within(0, 1, warmup=warmup)
    # The middle of the step, so that no step has rate 0.
    progress = min(1.0, clock.progress + 0.5 / (clock.steps * clock.epochs))
    if progress < warmup:
        return lr * progress / warmup
    return lr * 0.5 * (1.0 + math.cos(math.pi * (progress - warmup) / (1.0 - warmup))) if warmup < 1 else lr


@schedule(About(needs_validation=True))
def plateau(clock: Clock, lr: float, *, gamma: float = 0.1, patience: int = 2) -> float:
    """Multiply by `gamma` whenever the validation score has not improved for more than `patience` epochs."""
    within(0, 1, gamma=gamma)
    within(0, math.inf, patience=patience)
    best, waited, cuts = -math.inf, 0, 0
    # Only epochs of this clock: each phase of training has its own.
    for score in clock.scores[max(0, len(clock.scores) - clock.epoch) :]:
        waited += 1
        if score is not None and score > best:  # an undefined score is no improvement
            best, waited = score, 0
        if waited > patience:
            waited, cuts = 0, cuts + 1
    return float(lr * gamma**cuts)


@schedule()
def step(
    clock: Clock, lr: float, *, gamma: float = 0.1, at: tuple[float, ...] = (0.5, 0.75), every: int | None = None
) -> float:
    """Multiply by `gamma` after each of the epochs `at` (below 1: a share of all epochs), or every `every` epochs."""
    within(0, 1, gamma=gamma)
    if every is not None:
        within(1, math.inf, every=every)
        return float(lr * gamma ** (clock.epoch // every))
    within(0, math.inf, **{f"at[{place}]": after for place, after in enumerate(at)})
    passed = [after for after in at if clock.epoch >= (after * clock.epochs if after < 1 else after)]
    return float(lr * gamma ** len(passed))
