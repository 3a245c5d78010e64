"""The methods, one paper per file; a file dropped in here (or in a folder named by PARTLY_METHODS) is a method.

`partly.methods()` lists them: this module can be called, because its name is also that of the public function.

Examples
--------
>>> import partly
>>> partly.methods()["down-weight"]["settings"]
{'weight': 0.05}
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from partly import registry
from partly.errors import SettingError
from partly.labels import Labels
from partly.method import LossMethod, Method, Task
from partly.networks.linear import WARM_LINEAR
from partly.solvers import solved_readout, warm_start
from partly.solvers.mlp_with_linear_path import MlpWithLinearPath
from partly.solvers.solved_readout import SolvedReadout
from partly.solvers.start import can_start, fine_tunes, make_solved_start
from partly.solvers.start import memory as start_memory

__path__ += [folder for folder in os.environ.get("PARTLY_METHODS", "").split(os.pathsep) if folder]


class MethodInfo(registry.Info):
    """A method as its file describes it."""

    @property
    def kind(self) -> type[Method]:
        return self.make if isinstance(self.make, type) else LossMethod

    def kind_for(self, task: Task) -> type[Method]:
        """Return the class for this task: a solver if the loss can be solved."""
        return self._solver(task) if self.is_solved(task) else self.kind

    def build(self, task: Task, settings: dict[str, Any]) -> Method:
        """Build the untrained method with all of its settings; solve its start, unless the task has it."""
        if task.start is None and self.starts_solved(task):
            task = replace(task, start=make_solved_start(task))
        if isinstance(self.make, type):
            method: Method = self.make(task, **settings)
        elif self.about.terms is not None and self.is_solved(task):
            method = self._solver(task)(task, self.about.terms, settings)
        else:
            method = LossMethod(task, self.make, settings, self.about.may_be_best)
        if task.config.head == WARM_LINEAR and task.start is None and not self.is_solved(task):
            warm_start.start_heads(method, task)
        return method

    def memory(self, task: Task, settings: dict[str, Any]) -> tuple[int, int]:
        """Return the bytes of per-entry state, permanent and temporary, before anything is allocated."""
        if self.is_solved(task):
            return solved_readout.memory(task)
        kept, working = self.kind.memory(task, settings)
        if self.starts_solved(task):
            start = start_memory(task)
            return kept + start[0], max(working, start[1])
        return kept, max(working, solved_readout.memory(task)[1] if task.config.head == WARM_LINEAR else 0)

    @staticmethod
    def _solver(task: Task) -> type[SolvedReadout] | type[MlpWithLinearPath]:
        return MlpWithLinearPath if task.config.head == solved_readout.MLP_HEAD else SolvedReadout

    def is_solved(self, task: Task) -> bool:
        """Return whether the method is solved for such a task, and not trained by steps."""
        return self.about.terms is not None and solved_readout.can_solve(task)

    def starts_solved(self, task: Task) -> bool:
        """Return whether its networks start at a solved baseline for such a task."""
        solvable = self.about.terms is not None and task.config.head in (*solved_readout.HEADS, solved_readout.MLP_HEAD)
        solvable = solvable and not fine_tunes(task)
        steps = self.kind.starts_solved and self.kind.supports_distributed and not solvable
        return steps and task.config.start == "solved" and can_start(task)

    def unmet_need(self, labels: Labels, settings: Mapping[str, Any]) -> str:
        """Return what these labels lack for the method to learn anything; empty where it can."""
        needs = "" if settings.get("unknown_as_no") else self.about.learns_from
        if needs == "no" and not labels.counts()[1].any():
            return "no entry is known to be no"
        if needs == "items" and not (labels.known_per_item() == labels.shape[1]).any():
            return "no item has all of its labels known"
        return ""


def discover() -> dict[str, MethodInfo]:
    """Return all methods by name."""
    return registry.folder(__name__, "method", _maker, MethodInfo)


def find(name: str) -> MethodInfo:
    """Return the method of this name or alias."""
    return registry.find(name, discover(), "method")


def read(module: types.ModuleType) -> MethodInfo:
    """Return the method in a file at any path."""
    (info,) = registry.read(module, "method", _maker, MethodInfo).values()
    return info


def methods() -> dict[str, dict[str, Any]]:
    """Return all methods: name -> summary, citation and settings with their defaults."""
    return {name: info.words() for name, info in discover().items()}


def _maker(module: types.ModuleType) -> Callable[..., Any] | Mapping[str, Callable[..., Any]]:
    if hasattr(module, "PROVIDES"):
        provides: Mapping[str, Callable[..., Any]] = module.PROVIDES
        return provides
    own: list[Any] = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Method) and value.__module__ == module.__name__
    ]
    loss = getattr(module, "loss", None)
    if len(own) + (loss is not None) != 1:
        raise SettingError(
            f"{module.__file__}: a method file defines either one function `loss(logits, z, *, settings...)` or one "
            f"subclass of Method; this one has {len(own)} subclasses and {'a' if loss else 'no'} loss."
        )
    made: Callable[..., Any] = own[0] if own else vars(module)["loss"]
    return made


class _Callable(types.ModuleType):
    def __call__(self) -> dict[str, dict[str, Any]]:
        return methods()


sys.modules[__name__].__class__ = _Callable
