"""The contract of a method.

The loop owns time: order, saving and evaluation. A method owns change: its networks, optimizers and beliefs, and how a
step changes them. State that must survive a crash is a parameter, a buffer, registered per-entry state or an optimizer.
Parameters and buffers are the model; the rest is training state and is stored separately.
"""

from partly.method.base import Method
from partly.method.entry_state import EntryState
from partly.method.loss_method import LossMethod
from partly.method.task import Task
from partly.registry import About

__all__ = ["About", "EntryState", "LossMethod", "Method", "Task"]
