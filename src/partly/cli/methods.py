"""`partly methods`: list the training methods and the papers' configurations."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.dataclass_options import plugins_in
from partly.cli.options import Json, option
from partly.cli.printing import print_json
from partly.registry import sections


@command("Comparison")
def methods(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Method to describe: when to use it, formula, reference, settings.",
            autocompletion=plugins_in("methods"),
        ),
    ] = None,
    as_json: Json = False,
    recipes: Annotated[
        bool, option("List the papers' training configurations instead, for --recipe.", "--recipes")
    ] = False,
) -> None:
    """List the training methods, or describe one."""
    from partly import methods as catalogue

    if recipes:
        _print_recipes(as_json)
        return
    listed = catalogue.methods() if name is None else {name: catalogue.find(name).words()}
    if print_json(listed, as_json):
        return
    if name is not None:
        print(f"{name}\n    {listed[name]['summary']}\n")
        for heading, text in (sections(catalogue.find(name).text) | {"Settings": _settings(listed[name])}).items():
            print(f"{heading}\n{textwrap.indent(text, '    ')}\n")
        return
    for method, about in listed.items():
        print(f"{method}\n    {about['summary']}\n    settings: {_settings(about)}")


def _settings(about: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in about["settings"].items()) or "none"


def _print_recipes(as_json: bool) -> None:
    from partly.engine import presets

    every = {name: vars(preset) for name, preset in presets.discover().items()}
    if print_json(every, as_json):
        return
    for name, preset in every.items():
        print(f"{name}\n    {preset['paper']}")
        for key, value in preset["values"].items():
            print(f"    {key}: {value}")
        for key, words in preset["beside"].items():
            print(f"    ({key.replace('_', ' ')}: {words})")
