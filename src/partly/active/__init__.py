"""Active learning: rounds of training, asking and answering, their simulation, and question strategies."""

from __future__ import annotations

from partly.active.loop import AnswerValues, Loop, LoopConfig, Measure, Round
from partly.moved import make_getattr

__all__ = ["AnswerValues", "Loop", "LoopConfig", "Measure", "Round"]

__getattr__ = make_getattr(__name__, {"Plan": "LoopConfig", "Said": "AnswerValues"})
