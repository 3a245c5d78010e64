"""Shared builders: plans, models and tasks from a configuration that leaves nothing to choose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from partly import engine
from partly.config import ResolvedConfig
from partly.engine import FittedModel, Plan
from partly.items import Items
from partly.labels import Labels
from partly.method import Task


def plan_of(config: ResolvedConfig, items: Items, labels: Labels, validation: Any = None, weights: Any = None) -> Plan:
    """Return the plan of a resolved configuration."""
    held_out = (validation.items, validation.labels) if isinstance(validation, engine.Validation) else validation
    return engine.resolve(config, (items, labels), held_out, weights)


def fit_config(
    config: ResolvedConfig, items: Items, labels: Labels, *, validation: Any = None, weights: Any = None, **how: Any
) -> FittedModel:
    """Train a resolved configuration; how: arguments of `engine.fit`."""
    return engine.fit(plan_of(config, items, labels, validation, weights), **how)


def task_of(items: Items, labels: int, head: str = "mlp", observed: Labels | None = None, **changes: Any) -> Task:
    """Return a task; changes: fields of `Task` and of its configuration."""
    return change_task(Task(items, labels, observed=observed), **{"head": head, "weight_decay": 1e-2, **changes})


def change_task(task: Task, **changes: Any) -> Task:
    """Return the task with other fields, its own or those of its configuration."""
    fields = [name for name in changes if name in Task.__dataclass_fields__]
    # "solved" and "random" are the start of the configuration; that of a task is an object.
    own = {name: changes.pop(name) for name in fields if not isinstance(changes[name], str)}
    lr = changes.pop("lr", task.config.lr)
    config = replace(task.config, **changes)
    object.__setattr__(config, "lr", lr)  # a caller cannot ask for 0, a test can
    return replace(task, config=config, **own)
