"""Optimizers by name, and their state as tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from partly.errors import SettingError, did_you_mean

Groups = list[dict[str, Any]]
COMPILER_METHODS = (
    "add_param_group",
    "zero_grad",
    "state_dict",
    "load_state_dict",
)  # marked by torch for its compiler


def without_hooks(kind: type[Optimizer]) -> type[Any]:
    """Return the optimizer class without torch's hooks for its compiler and profiler.

    Only networks are compiled here (`Network.configure_training`). torch would import its compiler for every optimizer,
    which dominates the time of a short run, and announce each step to its profiler, which takes longer than a small
    step.
    """
    step: Any = torch.no_grad()(inspect.unwrap(kind.step))
    step.hooked = True  # torch then treats it as wrapped already
    return type(
        kind.__name__,
        (kind,),
        {name: inspect.unwrap(getattr(kind, name)) for name in COMPILER_METHODS} | {"step": step},
    )


ADAMW, SGD_, ADAM, RMSPROP = map(without_hooks, (AdamW, SGD, Adam, RMSprop))
MAKERS: dict[str, Callable[[Groups, float, float], Optimizer]] = {  # parameter groups, learning rate, weight decay
    "adamw": lambda groups, lr, decay: ADAMW(groups, lr=lr, weight_decay=decay, fused=True),
    "sgd": lambda groups, lr, decay: SGD_(groups, lr=lr, momentum=0.9, weight_decay=decay, fused=True),
    # Weight decay of these two is an L2 penalty in the gradient, unlike that of adamw.
    "adam": lambda groups, lr, decay: ADAM(groups, lr=lr, weight_decay=decay, fused=True),
    "rmsprop": lambda groups, lr, decay: RMSPROP(groups, lr=lr, alpha=0.9, weight_decay=decay),
}
OPTIMIZERS = tuple(MAKERS)
COPIES = {"adamw": 2, "sgd": 1, "adam": 2, "rmsprop": 1}  # state per parameter, in multiples of its size


def check(name: str) -> None:
    """Refuse an unknown optimizer."""
    if name not in MAKERS:
        raise SettingError(f"There is no optimizer {name!r}.{did_you_mean(name, OPTIMIZERS)}")


def make(name: str, groups: Groups, lr: float, weight_decay: float) -> Optimizer:
    check(name)
    return MAKERS[name](groups, lr, weight_decay)


def optimizer_state(optimizer: Optimizer) -> dict[str, Tensor]:
    """Return the state as a flat dictionary, by `position of the parameter.name`."""
    every = optimizer.state_dict()["state"].items()
    return {f"{number}.{name}": value for number, state in every for name, value in state.items() if value is not None}


def load_state(optimizer: Optimizer, tensors: Mapping[str, Tensor], prefix: str) -> None:
    """Load the result of `optimizer_state` from tensors with this prefix."""
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for key in (key for key in tensors if key.startswith(prefix)):
        number, entry = key.removeprefix(prefix).split(".", 1)
        state.setdefault(int(number), {})[entry] = match_layout(parameters[int(number)], tensors[key])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def match_layout(parameter: Tensor, saved: Tensor) -> Tensor:
    """Return a copy with the memory layout of the parameter, which fused optimizers require."""
    if saved.shape != parameter.shape:
        return saved.clone()
    return torch.empty_like(parameter, dtype=saved.dtype).copy_(saved)
