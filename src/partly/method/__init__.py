"""The contract of a method.

The loop owns time (order, saving, evaluating); a method owns change: its networks, its optimisers, its beliefs and
how one step changes them. All that must survive a crash is a parameter, a buffer, state kept for the training entries
or an optimiser of the method. Parameters and buffers are the model; the rest is there to train, and lives beside it.
"""

from partly.method.base import Method
from partly.method.entry_state import EntryState
from partly.method.loss_method import LossMethod
from partly.method.task import Task
from partly.registry import About

__all__ = ["About", "EntryState", "LossMethod", "Method", "Task"]
