"""Discovery of plug-ins: files in a folder (methods, heads, query strategies, ...), found by `folder`, and decorated
functions (schedules, criteria, checks), kept in a `Registry`.

There is no list to edit: a file dropped into a folder is available to every process that starts after that.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import json
import multiprocessing
import pkgutil
import re
import sys
import sysconfig
import textwrap
import traceback
import types
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from partly.errors import SettingError, did_you_mean

Needs = Literal["labels", "items", "features", "test"]


@dataclass(frozen=True)
class About:
    """Description that a plug-in file gives of itself, as the constant `ABOUT`. All fields are optional.

    Parameters
    ----------
    search : mapping
        Settings worth tuning: a tuple is a range, a list a choice.
    aliases : tuple of str
        Other names of the plug-in.
    in_papers : tuple of str
        Names under which papers print its results.
    learns_from : {"", "no", "items"}
        A method learns nothing without a known no, or without an item whose labels are all known.
    learns_from_unknown : bool
        A method learns from an item without any known entry, other than as an item without labels.
    terms : callable, optional
        `terms(z, *, settings...) -> (weights, targets)` of a loss that is a weighted cross-entropy of each entry;
        a linear head under it is solved.
    may_be_best : callable, optional
        `may_be_best(clock, *, settings...) -> bool` of a loss with phases, see `Method.may_be_best`.
    weights : str, optional
        Origin of a backbone's pretrained weights, in words.
    takes_maps : bool
        A head needs feature maps; pooled features are not enough.
    needs_validation : bool
        A schedule follows the scores of a validation part.
    needs : {"labels", "items", "features", "test"}
        Data that a check of the doctor looks at.
    """

    search: Mapping[str, tuple[float, float] | list[Any]] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    in_papers: tuple[str, ...] = ()
    learns_from: Literal["", "no", "items"] = ""
    learns_from_unknown: bool = False
    terms: Callable[..., Any] | None = None
    may_be_best: Callable[..., bool] | None = None
    weights: str | None = None
    takes_maps: bool = False
    needs_validation: bool = False
    needs: Needs = "labels"


# Names of module constants and functions of 0.2, and the fields of `About` that replace them.
FORMER_FIELDS = {
    "SEARCH": "search",
    "ALSO": "aliases",
    "IN_PAPERS": "in_papers",
    "LEARNS_FROM_UNKNOWN": "learns_from_unknown",
    "terms": "terms",
    "settled": "may_be_best",
    "WEIGHTS": "weights",
    "MAPS": "takes_maps",
    "NEEDS_VALIDATION": "needs_validation",
}


def about(module: types.ModuleType, name: str = "") -> About:
    """Return the description in a plug-in file; constants of 0.2 are read with a `DeprecationWarning`.

    A file that provides several plug-ins describes all of them by one `About`, or each by its name.
    """
    members = vars(module)
    description = members.get("ABOUT")
    if name and isinstance(description, Mapping):
        description = description.get(name, About())
    if isinstance(description, About):
        return description
    if description is not None:
        raise SettingError(f"{module.__file__}: ABOUT is {description!r}; it should be partly.registry.About(...).")
    former = (
        {}
        if is_installed(module.__file__ or "")
        else {name: members[name] for name in FORMER_FIELDS if name in members}
    )
    if former:
        warnings.warn(
            f"{module.__file__}: {', '.join(former)}: set ABOUT = About("
            f"{', '.join(f'{FORMER_FIELDS[name]}=...' for name in former)}) instead, with About of partly.registry.",
            DeprecationWarning,
            stacklevel=2,
        )
    return About(**{FORMER_FIELDS[name]: value for name, value in former.items()})


@dataclass(frozen=True)
class Info:
    """Description of a plug-in: its name, summary, settings with types and defaults, and its constructor."""

    what: str  # method, head, query, ...
    name: str
    summary: str
    citation: str
    settings: dict[str, inspect.Parameter]
    make: Callable[..., Any]
    module: types.ModuleType  # the file itself
    source_sha256: str = ""  # see `source_digest`; empty for files of the package
    about: About = About()
    text: str = ""  # the whole docstring

    def defaults(self) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in self.settings.items()}

    def words(self) -> dict[str, Any]:
        """Return the summary, citation and settings for listings."""
        also = f" Also called {', '.join(self.about.aliases)}." if self.about.aliases else ""
        return {"summary": self.summary + also, "citation": self.citation, "settings": self.defaults()}

    def complete(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with defaults filled in; refuse unknown names and wrong types."""
        for name, value in settings.items():
            if name not in self.settings:
                raise SettingError(
                    f"The {self.what} {self.name} has no setting {name!r}.{did_you_mean(name, self.settings)}"
                )
            wanted = self.settings[name].annotation
            if not fits(value, wanted):
                raise SettingError(f"{self.name}: setting {name} = {value!r} should be {spell_type(wanted)}.")
        return self.defaults() | settings


SECTION = re.compile(r"^(\S.*)\n(?= {4})((?:(?: {4}.*)?\n)+)", re.M)  # a heading and an indented block
Of = TypeVar("Of", bound=Info)
Function = TypeVar("Function", bound=Callable[..., Any])
# Return the function or class that a file provides, several of them by name, or None for a file without a plug-in.
Maker = Callable[[types.ModuleType], Callable[..., Any] | Mapping[str, Callable[..., Any]] | None]


def folder(package: str, what: str, maker: Maker, kind: type[Of]) -> dict[str, Of]:
    """Return the plug-ins of a package by name (file name, `_` written `-`).

    A file from outside of the package that cannot be used is left out, with a warning; `find` says why.
    """
    found: dict[str, Of] = {}
    for stem in _stems(tuple(importlib.import_module(package).__path__)):
        name = stem.replace("_", "-")
        if (what, name) in _BROKEN:
            continue
        try:
            found |= read(importlib.import_module(f"{package}.{stem}"), what, maker, kind)
        except (Exception, SystemExit) as error:
            _BROKEN[what, name] = _reason_for_leaving_out(f"{package}.{stem}", what, error)
            if multiprocessing.parent_process() is None:  # worker processes do not repeat it
                warnings.warn(f"{_BROKEN[what, name]} All others can be used.", stacklevel=2)
    return found


_BROKEN: dict[tuple[str, str], str] = {}  # (what, name) -> what is wrong with the file


def _reason_for_leaving_out(module: str, what: str, error: BaseException) -> str:
    """Name the file, the line and the error; raise it again if the file belongs to the package."""
    spec = importlib.util.find_spec(module)
    path = "" if spec is None or spec.origin is None else spec.origin
    if is_installed(path):
        raise error
    if isinstance(error, SettingError):
        return str(error)  # it names the file
    frames = traceback.extract_tb(error.__traceback__)
    numbers = [frame.lineno for frame in frames if frame.filename == path]
    if isinstance(error, SyntaxError) and error.filename == path:
        numbers.append(error.lineno)
    line = f":{numbers[-1]}" if numbers else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{path}{line}: cannot be used as a {what}. {type(error).__name__}: {message}."


@cache  # a single fit asks for methods, heads and schedules some twenty times
def _stems(path: tuple[str, ...]) -> list[str]:
    """Return the names of the plug-in files; files whose names begin with _ hold shared code."""
    return sorted({module.name for module in pkgutil.iter_modules(path) if not module.name.startswith("_")})


_READ: dict[tuple[types.ModuleType, str], Any] = {}  # comparisons ask for their methods thousands of times


def read(module: types.ModuleType, what: str, maker: Maker, kind: type[Of]) -> dict[str, Of]:
    """Return the plug-ins of a file by name: most files provide one, some several, others none."""
    if (module, what) not in _READ:
        _READ[module, what] = _describe(module, what, maker(module), kind)
    plugins: dict[str, Of] = _READ[module, what]
    return plugins


def _describe(
    module: types.ModuleType,
    what: str,
    makes: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None,
    kind: type[Of],
) -> dict[str, Of]:
    if makes is None:
        return {}
    if isinstance(makes, Mapping):  # the docstring of each, then what the file says of all of them
        shared = inspect.cleandoc(module.__doc__ or "").partition("\n\n")[2]
        texts = {name: f"{inspect.cleandoc(make.__doc__ or '')}\n\n{shared}" for name, make in makes.items()}
        infos = [
            _info(name, texts[name], module, what, make, kind, about(module, name)) for name, make in makes.items()
        ]
    else:
        infos = [_info(module.__name__.rpartition(".")[2], module.__doc__, module, what, makes, kind, about(module))]
    return {info.name: info for info in infos}


def _info(
    name: str,
    doc: str | None,
    module: types.ModuleType,
    what: str,
    make: Callable[..., Any],
    kind: type[Of],
    description: About,
) -> Of:
    text = inspect.cleandoc(doc or "")
    summary = text.partition("\n\n")[0]
    parameters = inspect.signature(make, eval_str=True).parameters.values()
    settings = {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}
    former = [part.removeprefix("Paper:") for part in text.split("\n\n") if part.startswith("Paper:")]  # of 0.2
    citation = _one_line(sections(text).get("Reference") or " ".join(former))
    digest = source_digest(module)
    name = name.replace("_", "-")
    return kind(what, name, _one_line(summary), citation, settings, make, module, digest, description, text)


class Registry(Generic[Of]):
    """Functions of one kind by name, with a decorator that registers one.

    The name of a plug-in is that of its function, `_` written `-`. Its docstring describes it, and its keyword-only
    parameters are the settings.
    """

    def __init__(self, what: str, kind: type[Of]) -> None:
        self.what, self.kind = what, kind
        self._functions: dict[str, tuple[Callable[..., Any], About]] = {}
        self._infos: dict[Callable[..., Any], Of] = {}

    def register(self, about: About = About()) -> Callable[[Function], Function]:  # noqa: B008 - frozen
        """Return a decorator that makes a function available by its name."""

        def decorate(function: Function) -> Function:
            name = function.__name__.replace("_", "-")
            former = self._functions.get(name, (function, about))[0]
            if former.__module__ != function.__module__:
                raise SettingError(
                    f"{function.__module__}: there is a {self.what} {name!r} already, in {former.__module__}. "
                    "Choose another name."
                )
            self._functions[name] = function, about
            return function

        return decorate

    def discover(self) -> dict[str, Of]:
        """Return every registered function, by name."""
        return {name: self._describe(*self._functions[name]) for name in sorted(self._functions)}

    def find(self, name: str) -> Of:
        """Return the function of this name, or of an alias."""
        return find(name, self.discover(), self.what)

    def _describe(self, function: Callable[..., Any], about: About) -> Of:
        """Describe a function when it is first asked for: the module that defines it is complete by then."""
        if function not in self._infos:
            module = sys.modules[function.__module__]
            self._infos[function] = _info(
                function.__name__, function.__doc__, module, self.what, function, self.kind, about
            )
        return self._infos[function]


def source_digest(module: types.ModuleType) -> str:
    """Return the SHA-256 of a file of the user and of all files of the user that it imports; "" for an installed file.

    Only the contents count, not the paths.
    """
    digests = sorted(hashlib.sha256(content).hexdigest() for content in _own_files(module))
    return hashlib.sha256("\n".join(digests).encode()).hexdigest() if digests else ""


def _own_files(module: types.ModuleType) -> Iterator[bytes]:
    seen: set[str] = set()
    waiting: list[types.ModuleType | None] = [module]
    while waiting:
        here = waiting.pop()
        path = getattr(here, "__file__", None)
        if here is None or path is None or path in seen or is_installed(path):
            continue
        seen.add(path)
        with suppress(OSError):
            yield Path(path).read_bytes()
        for value in vars(here).values():
            name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
            waiting.append(sys.modules.get(name) if isinstance(name, str) else None)


def is_installed(path: str) -> bool:
    """Return True for files of this package, of the standard library and of installed packages."""
    installed = [str(Path(__file__).parent), *(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib"))]
    return any(Path(path).is_relative_to(folder) for folder in installed) or bool(
        {"site-packages", "dist-packages"} & set(Path(path).parts)
    )


def find(name: str, there: dict[str, Of], what: str) -> Of:
    """Return the plug-in of this name or alias."""
    named = {other: info for info in there.values() for other in info.about.aliases} | there
    if name not in named:
        if (what, name) in _BROKEN:
            raise SettingError(_BROKEN[what, name])
        raise SettingError(f"There is no {what} {name!r}.{did_you_mean(name, named)}")
    return named[name]


def parse_settings(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse pairs name=value; values are read as JSON (numbers, true, null) where possible, else as text."""
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


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by heading: the block that is indented below it."""
    return {heading: textwrap.dedent(block).strip() for heading, block in SECTION.findall(text + "\n")}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def fits(value: Any, wanted: Any) -> bool:
    """Return whether a value, as it may come from a file, is of a type; see `spell_type` for its description."""
    if wanted is Any:
        return True
    if typing.get_origin(wanted) is dict:
        keys, values = typing.get_args(wanted)
        return isinstance(value, dict) and all(fits(key, keys) and fits(part, values) for key, part in value.items())
    if isinstance(wanted, types.UnionType) or typing.get_origin(wanted) is typing.Union:
        return any(fits(value, part) for part in typing.get_args(wanted))
    if typing.get_origin(wanted) is typing.Literal:
        return value in typing.get_args(wanted)
    if typing.get_origin(wanted) is tuple:  # of any length; a list, where it comes from a file
        return isinstance(value, list | tuple) and all(fits(part, typing.get_args(wanted)[0]) for part in value)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return value is None if wanted is type(None) or wanted is None else isinstance(value, wanted)


def spell_type(wanted: Any) -> str:
    """Return the description of a type for an error message."""
    if typing.get_origin(wanted) is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(wanted)))
    return f"of type {getattr(wanted, '__name__', wanted)}"
