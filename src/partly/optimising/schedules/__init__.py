"""Schedules: what the learning rate is at a step. One per file; a file dropped in here is a schedule.

A file defines `rate(clock, lr, *, settings...)`, a pure function: all that it may remember is on the clock, where the
scores of the validation part are too. `NEEDS_VALIDATION = True` says that it goes by them.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from functools import cache
from typing import Any

from partly import catalogue


def discover() -> dict[str, catalogue.Info]:
    """Every schedule there is, by name."""
    return catalogue.folder(__name__, "schedule", _rate, catalogue.Info)


@cache  # it is asked for at every step
def find(name: str) -> catalogue.Info:
    return catalogue.find(name, discover(), "schedule")


def needs_validation(name: str) -> bool:
    """Whether it goes by the scores of a validation part."""
    return bool(getattr(find(name).module, "NEEDS_VALIDATION", False))


def _rate(module: types.ModuleType) -> Callable[..., Any] | None:
    return getattr(module, "rate", None)
