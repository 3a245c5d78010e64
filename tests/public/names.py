"""What is public, read from where it is said: the names of docs/api.md, and the commands with their options.

`python tests/public/names.py` writes the listing that `test_listing.py` compares with. Whoever changes it says so in
CHANGELOG.md.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import partly
from partly.cli import main

ROOT = Path(__file__).resolve().parents[2]
LISTING = Path(__file__).with_name("listing.txt")
NAMES = re.findall(r"^::: partly\.(\S+)", (ROOT / "docs" / "api.md").read_text("utf-8"), re.M)


def found(name: str) -> Any:
    """What a public name is the name of."""
    thing: Any = partly
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public names of a class that it has itself, with what they are the names of."""
    for name, what in sorted(vars(kind).items()):
        what = inspect.unwrap(getattr(what, "__func__", what))
        if not name.startswith("_") and (callable(what) or isinstance(what, property)):
            yield name, what


def lines() -> Iterator[str]:
    for name in sorted(NAMES):
        thing = found(name)
        yield f"partly.{name}{signature(thing)}"
        if isinstance(thing, type):
            yield from (f"partly.{name}.{member}{signature(what)}" for member, what in members(thing))
    yield from commands(typer.main.get_command(main.app), "partly")


def signature(thing: Any) -> str:
    """As it stands in the source; a property has none, and neither has an error."""
    if isinstance(thing, property):
        return f": {inspect.get_annotations(thing.fget).get('return', 'Any')}"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return "(...)"
    return str(inspect.signature(thing)).replace("'", "")


def commands(command: Any, said: str) -> Iterator[str]:
    """A line for each command: its arguments, then its options with what they are where they are not said."""
    if hasattr(command, "commands"):
        for name in sorted(command.commands):
            yield from commands(command.get_command(None, name), f"{said} {name}")  # adds what all commands have
        return
    words = [p.name.upper() if p.param_type_name == "argument" else option(p) for p in command.params]
    yield " ".join([said, *sorted(words, key=lambda word: word.startswith("["))])


def option(param: Any) -> str:
    names = "/".join([*param.opts, *param.secondary_opts])
    if param.required:
        return names
    return f"[{names}]" if param.is_flag else f"[{names}={param.default}]"


if __name__ == "__main__":
    LISTING.write_text("\n".join(lines()) + "\n", "utf-8")
