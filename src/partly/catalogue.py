"""What methods there are: reads the folder `methods/`, its docstrings and its settings."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from partly.errors import SettingError, did_you_mean
from partly.method import LossMethod, Method, Task


@dataclass(frozen=True)
class Entry:
    """A method as the folder shows it: name, words about it, settings with types and defaults, and how to make it."""

    name: str
    summary: str
    citation: str
    settings: dict[str, inspect.Parameter]
    make: type[Method] | Callable[..., Any]
    module: types.ModuleType  # the file itself

    @property
    def kind(self) -> type[Method]:
        return self.make if isinstance(self.make, type) else LossMethod

    def defaults(self) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in self.settings.items()}

    @property
    def text(self) -> str:
        """All that the file says of itself."""
        return inspect.cleandoc(self.module.__doc__ or "")

    def search(self) -> dict[str, tuple[float, float] | list[Any]]:
        """Settings worth tuning, as the file declares them in `SEARCH`: a tuple is a range, a list a choice."""
        ranges: dict[str, tuple[float, float] | list[Any]] = getattr(self.module, "SEARCH", {})
        return ranges

    @property
    def also(self) -> tuple[str, ...]:
        """Other names, as the file declares them in `ALSO`."""
        names: tuple[str, ...] = getattr(self.module, "ALSO", ())
        return names

    def words(self) -> dict[str, Any]:
        """What a list of methods says of this one."""
        also = f" Also called {', '.join(self.also)}." if self.also else ""
        return {"summary": self.summary + also, "citation": self.citation, "settings": self.defaults()}

    def build(self, task: Task, settings: dict[str, Any] | None = None) -> Method:
        chosen = self.defaults() | self.checked(settings or {})
        method: Method = (
            self.make(task, **chosen) if isinstance(self.make, type) else LossMethod(task, self.make, chosen)
        )
        return method

    def checked(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings, if each exists and has the right type."""
        for name, value in settings.items():
            if name not in self.settings:
                raise SettingError(f"{self.name} has no setting {name!r}.{did_you_mean(name, self.settings)}")
            wanted = self.settings[name].annotation
            if not _fits(value, wanted):
                raise SettingError(f"{self.name}: setting {name} = {value!r} should be {_spelled(wanted)}.")
        return settings


def find(name: str) -> Entry:
    """The method of this name, or of one that its file gives in `ALSO`."""
    every = discover()
    named = {other: entry for entry in every.values() for other in entry.also} | every
    if name not in named:
        raise SettingError(f"There is no method {name!r}.{did_you_mean(name, named)}")
    return named[name]


def discover() -> dict[str, Entry]:
    """Every method in the folder, by name (file name, `_` written `-`)."""
    folder = importlib.import_module("partly.methods")
    stems = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    entries = (read(importlib.import_module(f"{folder.__name__}.{stem}")) for stem in stems)
    return {entry.name: entry for entry in entries}


def methods() -> dict[str, dict[str, Any]]:
    """What methods there are: name -> summary, citation and settings with their defaults."""
    return {name: entry.words() for name, entry in discover().items()}


@cache  # comparisons ask for their methods thousands of times
def read(module: types.ModuleType) -> Entry:
    """What a method file says of itself."""
    return described(module, _maker(module))


def described(module: types.ModuleType, make: type[Method] | Callable[..., Any]) -> Entry:
    """An entry from the words of a file, and from the settings of what it makes."""
    summary, *parts = inspect.cleandoc(module.__doc__ or "").split("\n\n")
    papers = [part.removeprefix("Paper:") for part in parts if part.startswith("Paper:")]
    parameters = inspect.signature(make, eval_str=True).parameters.values()
    settings = {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    return Entry(name, _one_line(summary), _one_line(" ".join(papers)), settings, make, module)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _maker(module: types.ModuleType) -> type[Method] | Callable[..., Any]:
    own = [
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
    return own[0] if own else typing.cast(Callable[..., Any], loss)


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, types.UnionType) or typing.get_origin(wanted) is typing.Union:
        return any(_fits(value, part) for part in typing.get_args(wanted))
    if typing.get_origin(wanted) is typing.Literal:
        return value in typing.get_args(wanted)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return value is None if wanted is type(None) or wanted is None else isinstance(value, wanted)


def _spelled(wanted: Any) -> str:
    if typing.get_origin(wanted) is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(wanted)))
    return f"of type {getattr(wanted, '__name__', wanted)}"
