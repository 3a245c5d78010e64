"""Custom backbones and heads: a torch module of the caller, or a function that makes one.

Configurations hold plain names and numbers, so such a module is registered under a name (`own:...`) as long as the
caller keeps it alive. Only weights are saved: pass the module again to load the model.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn

from partly.errors import SettingError
from partly.registry import is_installed

PREFIX = "own:"
NONE = "none"  # the head of a backbone that makes logits itself
Part = nn.Module | Callable[..., nn.Module]

_REGISTERED: WeakValueDictionary[str, Any] = WeakValueDictionary()


def register(part: Any, what: str) -> str:
    """Register a custom module and return its name for configurations, which includes a digest of its weights."""
    if isinstance(part, str):
        return part
    if not callable(part):
        raise SettingError(f"{what} = {part!r} must be a name, a torch module, or a function or class that makes one.")
    name = f"{PREFIX}{_class_name(part)}"
    if isinstance(part, nn.Module):
        digest = hashlib.sha256(repr(part).encode())
        for key, tensor in part.state_dict().items():
            digest.update(
                key.encode() + tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
            )
        name += f":{digest.hexdigest()[:12]}"
    _REGISTERED[name] = part
    return name


def rebind(name: str, part: Part, what: str) -> None:
    """Register a module under the name in a saved configuration; it must be of the same class."""
    if not name.startswith(PREFIX):
        raise SettingError(f"{what}: the saved model has the {what} {name!r}, which needs nothing given. Leave it out.")
    saved_class = name.split(":")[1]
    if _class_name(part) != saved_class:
        raise SettingError(f"{what}: the saved model was made with {saved_class}, and this is {_class_name(part)}.")
    _REGISTERED[name] = part


class MissingModule(SettingError):
    """Raised when a model is loaded without its custom module."""


def instantiate(name: str, what: str, *sizes: Any) -> nn.Module:
    """Return a copy of the registered module, or the result of its factory for these sizes."""
    part = _REGISTERED.get(name)
    if part is None:
        raise MissingModule(
            f"{what} = {name!r} is a custom module, and only its weights are saved. Pass it again: "
            f"Classifier.load(folder, {what}=...), as an object of the class {name.split(':')[1]}, or a "
            "function or class that makes one."
        )
    if isinstance(part, nn.Module):
        return copy.deepcopy(part)
    module = part(*sizes)
    if not isinstance(module, nn.Module):
        raise SettingError(f"{what}: {_class_name(part)}{sizes} gave {type(module).__name__}, not a torch module.")
    return module


def custom_head(name: str, inputs: int, labels: int) -> tuple[nn.Module, nn.Module]:
    """Return an empty trunk and the custom head."""
    head = instantiate(name, "head", inputs, labels)
    logits = probe(head, torch.zeros(2, inputs), f"head: features [2, {inputs}]")
    if logits.shape != (2, labels):
        raise SettingError(
            f"head: makes {list(logits.shape)} of features [2, {inputs}]; it must make logits [2, {labels}]."
        )
    return nn.Identity(), head


def no_head(inputs: int, labels: int) -> tuple[nn.Module, nn.Module]:
    """Return an empty head for a backbone that makes logits itself."""
    if inputs != labels:
        raise SettingError(
            f"head = {NONE!r}: the backbone makes {inputs} numbers of an item; there are {labels} labels."
        )
    return nn.Identity(), nn.Identity()


@torch.no_grad()
def probe(module: nn.Module, x: Tensor, place: str) -> Tensor:
    """Return the output of a module for x in evaluation mode; errors name the place."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()  # until the modes are restored below
    try:
        output = module(x)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise SettingError(f"{place}: {type(module).__name__} fails on them ({error}).") from None
    finally:
        for part, mode in modes:
            part.training = mode
    if not isinstance(output, Tensor):
        raise SettingError(f"{place}: {type(module).__name__} makes {type(output).__name__} of them, not a tensor.")
    return output


def source_digest(name: str) -> str:
    """Return the SHA-256 of the source of a custom module; empty if it is installed or has no file."""
    part = _REGISTERED.get(name)
    try:
        source: Any = _class(part)
        installed = is_installed(inspect.getfile(source))
        return "" if installed else hashlib.sha256(inspect.getsource(source).encode()).hexdigest()
    except (OSError, TypeError):  # defined interactively, not in a file
        return ""


def _class(part: Any) -> Any:
    """Return the class of a module, or the function or class that makes one."""
    return type(part) if isinstance(part, nn.Module) else inspect.unwrap(part)


def _class_name(part: Any) -> str:
    source = _class(part)
    return str(getattr(source, "__qualname__", type(source).__qualname__))
