"""Active learning: rounds of training, asking and answering, their simulation, and question strategies."""

from __future__ import annotations

import warnings
from typing import Any

from partly.active.loop import AnswerValues, Loop, LoopConfig, Measure, Round

__all__ = ["AnswerValues", "Loop", "LoopConfig", "Measure", "Round"]

_RENAMED = {"Plan": "LoopConfig", "Said": "AnswerValues"}


def __getattr__(name: str) -> Any:
    """Return renamed names, with a warning."""
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"partly.active.{name} is now {_RENAMED[name]}.", DeprecationWarning, stacklevel=2)
    return globals()[_RENAMED[name]]
