"""Options of a command from the fields of a dataclass."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from partly.registry import parse_settings

Values = dict[str, Any]


class Omit:
    """Annotation that leaves out some fields of a dataclass parameter: `Annotated[Config, Omit("seed")]`."""

    def __init__(self, *names: str) -> None:
        self.names = names


def plugins_in(folder: str) -> Callable[[str], list[str]]:
    """Complete a word with the names of the plug-ins in a folder of the package, without importing them."""

    def complete(begun: str) -> list[str]:
        files = (Path(__file__).parents[1] / folder).glob("[!_]*.py")
        return sorted(name for file in files for name in _plugin_names(file) if name.startswith(begun))

    return complete


def _plugin_names(file: Path) -> list[str]:
    """Return the names in `PROVIDES` of a plug-in file, or the name of the file."""
    provides = re.search(r"^PROVIDES = \{(.*?)\}", file.read_text("utf-8"), re.M | re.S)
    return re.findall(r'"([^"]+)":', provides[1]) if provides else [file.stem.replace("_", "-")]


def expand_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with one option for each field of its dataclass parameters.

    The metadata of a field may hold `help`; `option`, one spelling or several (`"--augment/--no-augment"`), where it is
    not the name of the field; `cli_type`, where the option takes less than the field; `cli=False` for a field that is
    no option; `complete`, a folder of the package whose plug-ins complete a word; `panel`, its heading in the help.
    A field annotated with a `typer.Option` is used unchanged. A `dict` holds settings: `head_settings` becomes a
    repeatable `--head-setting name=value`. The function can still be called with an instance.
    """
    hints = get_type_hints(function, include_extras=True)
    bundles: dict[str, tuple[Any, Values]] = {}
    for name, hint in hints.items():
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if name != "return" and dataclasses.is_dataclass(kind):
            omitted = {field for extra in extras if isinstance(extra, Omit) for field in extra.names}
            fields = {field: of for field, of in hints_of(kind).items() if field not in omitted}
            bundles[name] = kind, fields
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        annotated = parameter.replace(annotation=hints.get(parameter.name, Any), kind=inspect.Parameter.KEYWORD_ONLY)
        if parameter.name in bundles:
            parameters += _options_of(*bundles[parameter.name], parameter.default)
        else:
            parameters.append(annotated)

    @functools.wraps(function)
    def call(*args: Any, **values: Any) -> Any:
        for name, (kind, fields) in bundles.items():
            if name not in values:
                values[name] = _build(kind, fields, values)
        return function(*args, **values)

    vars(call)["__signature__"] = inspect.Signature(parameters)
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def hints_of(kind: Any) -> Values:
    """Return the types of the fields that are options."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: field.metadata.get("cli_type", hints[field.name])
        for field in dataclasses.fields(kind)
        if field.init and field.metadata.get("cli", True)
    }


def _options_of(kind: Any, hints: Values, default: Any) -> list[inspect.Parameter]:
    """Return a keyword parameter for each field; its default is that of the field, or of the instance `default`."""
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=_option(field, hints[field.name]),
            default=_default(field, default),
        )
        for field in dataclasses.fields(kind)
        if field.name in hints
    ]


def _option(field: dataclasses.Field[Any], hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return hint
    spellings = field.metadata.get("option", ())
    names = [spellings] if isinstance(spellings, str) else list(spellings)
    kind = _container(hint)
    if not names and kind is dict:
        names = [f"--{field.name.removesuffix('s').replace('_', '-')}"]
    if not names and hint is bool and field.default is False:
        names = [f"--{field.name.replace('_', '-')}"]
    option = typer.Option(
        *names,
        help=field.metadata.get("help"),
        autocompletion=plugins_in(field.metadata["complete"]) if "complete" in field.metadata else None,
        rich_help_panel=field.metadata.get("panel"),
    )
    if kind is None:
        return Annotated[hint, option]
    of = str if kind is dict else _members(hint)[0]
    return Annotated[Union[list[of], None], option]  # type: ignore[valid-type] # noqa: UP007 (computed)


def _default(field: dataclasses.Field[Any], instance: Any) -> Any:
    """Return the default of an option; a container that is empty is None, as Typer has it."""
    if dataclasses.is_dataclass(instance):
        value = getattr(instance, field.name)
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        value = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
    if isinstance(value, dict):
        return [f"{name}={text}" for name, text in value.items()] or None
    return (list(value) or None) if isinstance(value, list | tuple) else value


def _build(kind: Any, hints: Values, values: Values) -> Any:
    """Take the values of the fields out of those of the command, and make an instance."""
    own_values = {name: values.pop(name) for name in hints if name in values}
    return kind(**{name: _convert(hints[name], value) for name, value in own_values.items()})


def _convert(hint: Any, value: Any) -> Any:
    container = _container(get_args(hint)[0] if get_origin(hint) is Annotated else hint)
    if container is None or (value is None and type(None) in _alternatives(hint)):
        return value
    return parse_settings(value or []) if container is dict else container(value or ())


def _container(hint: Any) -> type | None:
    """Return dict, list or tuple where a field holds one, or may."""
    kinds = [get_origin(one) or one for one in _alternatives(hint)]
    return next((kind for kind in (dict, list, tuple) if kind in kinds), None)


def _members(hint: Any) -> tuple[Any, ...]:
    return next(get_args(one) for one in _alternatives(hint) if get_origin(one) in (list, tuple))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """Return A and None of `A | None`."""
    is_union = get_origin(hint) is Union or type(hint).__name__ == "UnionType"
    return get_args(hint) if is_union else (hint,)
