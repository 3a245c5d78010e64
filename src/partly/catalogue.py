"""What a folder of files offers: each file is a method, a head, a query, ... with words about itself and settings.

Nothing is listed by hand: a file dropped into the folder is there, for every process that is started after that.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from partly.errors import SettingError, did_you_mean


@dataclass(frozen=True)
class Info:
    """What a file says of itself: its name, words, settings with types and defaults, and what it makes."""

    what: str  # method, head, query, ...
    name: str
    summary: str
    citation: str
    settings: dict[str, inspect.Parameter]
    make: Callable[..., Any]
    module: types.ModuleType  # the file itself

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
        """What a list says of it."""
        also = f" Also called {', '.join(self.also)}." if self.also else ""
        return {"summary": self.summary + also, "citation": self.citation, "settings": self.defaults()}

    def complete(self, settings: dict[str, Any]) -> dict[str, Any]:
        """All settings, the defaults included; refuses one that does not exist or has the wrong type."""
        for name, value in settings.items():
            if name not in self.settings:
                raise SettingError(
                    f"The {self.what} {self.name} has no setting {name!r}.{did_you_mean(name, self.settings)}"
                )
            wanted = self.settings[name].annotation
            if not _fits(value, wanted):
                raise SettingError(f"{self.name}: setting {name} = {value!r} should be {_spelled(wanted)}.")
        return self.defaults() | settings


Of = TypeVar("Of", bound=Info)
Maker = Callable[[types.ModuleType], Callable[..., Any] | None]  # what a file makes, None for a file that makes nothing


def folder(package: str, what: str, maker: Maker, kind: type[Of]) -> dict[str, Of]:
    """Every file of a package that makes something, by name (file name, `_` written `-`)."""
    found = {}
    for stem in _stems(tuple(importlib.import_module(package).__path__)):
        info = read(importlib.import_module(f"{package}.{stem}"), what, maker, kind)
        if info is not None:
            found[info.name] = info
    return found


@cache  # a single fit asks for methods, heads and schedules some twenty times
def _stems(path: tuple[str, ...]) -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(path))


_READ: dict[tuple[types.ModuleType, str], Any] = {}  # comparisons ask for their methods thousands of times


def read(module: types.ModuleType, what: str, maker: Maker, kind: type[Of]) -> Of | None:
    """What a file says of itself; None where it makes nothing."""
    if (module, what) not in _READ:
        make = maker(module)
        _READ[module, what] = None if make is None else _described(module, what, make, kind)
    found: Of | None = _READ[module, what]
    return found


def _described(module: types.ModuleType, what: str, make: Callable[..., Any], kind: type[Of]) -> Of:
    summary, *parts = inspect.cleandoc(module.__doc__ or "").split("\n\n")
    papers = [part.removeprefix("Paper:") for part in parts if part.startswith("Paper:")]
    parameters = inspect.signature(make, eval_str=True).parameters.values()
    settings = {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    return kind(what, name, _one_line(summary), _one_line(" ".join(papers)), settings, make, module)


def find(name: str, there: dict[str, Of], what: str) -> Of:
    """The one of this name, or of another name that its file gives in `ALSO`."""
    named = {other: info for info in there.values() for other in info.also} | there
    if name not in named:
        raise SettingError(f"There is no {what} {name!r}.{did_you_mean(name, named)}")
    return named[name]


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """name=value each; values as JSON where they are (numbers, true, null), else as text."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, sign, text = pair.partition("=")
        if not sign:
            raise SettingError(f"Setting {pair!r} should be name=value.")
        try:
            settings[name.strip()] = json.loads(text)
        except json.JSONDecodeError:
            settings[name.strip()] = text.strip()
    return settings


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, types.UnionType) or typing.get_origin(wanted) is typing.Union:
        return any(_fits(value, part) for part in typing.get_args(wanted))
    if typing.get_origin(wanted) is typing.Literal:
        return value in typing.get_args(wanted)
    if typing.get_origin(wanted) is tuple:  # of any length; a list, where it comes from a file
        return isinstance(value, list | tuple) and all(_fits(part, typing.get_args(wanted)[0]) for part in value)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return value is None if wanted is type(None) or wanted is None else isinstance(value, wanted)


def _spelled(wanted: Any) -> str:
    if typing.get_origin(wanted) is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(wanted)))
    return f"of type {getattr(wanted, '__name__', wanted)}"
