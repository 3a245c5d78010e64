"""`partly methods`: list the training methods and the papers' configurations."""

from __future__ import annotations

from typing import Annotated

import typer

from partly.cli.app import command
from partly.cli.dataclass_options import plugins_in
from partly.cli.options import Json, option
from partly.cli.printing import print_json


@command("Comparison")
def methods(
    name: Annotated[
        str | None, typer.Argument(help="Show only this method.", autocompletion=plugins_in("methods"))
    ] = None,
    as_json: Json = False,
    recipes: Annotated[
        bool, option("List the papers' training configurations instead, for --recipe.", "--recipes")
    ] = False,
) -> None:
    """List the training methods with their settings."""
    from partly import methods as catalogue

    if recipes:
        _print_recipes(as_json)
        return
    shown = catalogue.methods() if name is None else {name: catalogue.find(name).words()}
    if print_json(shown, as_json):
        return
    for method, about in shown.items():
        settings = ", ".join(f"{key}={value}" for key, value in about["settings"].items())
        print(f"{method}\n    {about['summary']}\n    {about['citation']}")
        print(f"    settings: {settings or 'none'}")


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
