"""The Typer application, and the decorator that adds a command to it.

A command is a file in this folder with a function under `@command(...)`; `main` imports them all, so there is no list
to edit. Whatever needs numpy or torch is imported inside the functions, so that `partly --help` answers at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from partly.cli.dataclass_options import expand_options
from partly.cli.printing import say
from partly.cli.spelling import MOVED_COMMANDS, respell
from partly.distributed.progress import step
from partly.errors import SettingError

PANELS = ("Start", "Models", "Labels", "Comparison", "Annotation")  # in the order of `partly --help`
FIRST_PANELS, LAST_PANELS = ("Arguments", "Data", "Model", "Training"), ("Output", "Options", "General")
TYPE = re.compile(r" <(?:list\[)?(\w+)[^>]*>")  # as Typer writes the type of an option
TYPE_NAMES = {"str": "TEXT", "int": "N", "float": "NUMBER"}
SERVERS = ("annotate",)  # commands that run until they are stopped, so there is no progress to show


def _set_quiet(context: typer.Context, quiet: bool) -> None:
    """Show the command as the step under way, or discard stderr; errors are printed after that."""
    if context.resilient_parsing:  # shell completion
        return
    if quiet:
        discarded = context.with_resource(open(os.devnull, "w"))  # noqa: SIM115 (closed by the context)
        context.with_resource(redirect_stderr(discarded))
    elif context.info_name not in SERVERS:
        context.with_resource(step(f"partly {context.info_name}"))


_template = typer.Typer(add_completion=False)


@_template.command()
def _(
    quiet: Annotated[
        bool,
        typer.Option(
            "-q",
            "--quiet",
            expose_value=False,
            callback=_set_quiet,
            rich_help_panel="General",
            help="Suppress progress output; errors are still printed.",
        ),
    ] = False,
) -> None: ...


(QUIET,) = typer.main.get_command(_template).params


class Command(TyperCommand):
    """A command with `--quiet`, whose help groups options under the headings of their panels."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **settings: Any) -> None:
        super().__init__(*args, params=[*(params or []), QUIET], **settings)
        for param in self.params:
            if param.param_type_name == "argument":
                param.metavar = param.metavar or str(param.name).upper()

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [re.sub(r"^\{(.*)\}(\.\.\.)?$", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {panel: [] for panel in FIRST_PANELS}
        for param in self.get_params(ctx):
            name, help = param.get_help_record(ctx) or ("", "")
            panel = getattr(param, "rich_help_panel", None) or ("General" if "--help" in param.opts else "Options")
            if param.param_type_name == "argument":
                panel, name = "Arguments", str(param.metavar)
            name = TYPE.sub(lambda match: f" {TYPE_NAMES.get(match[1], match[1].upper())}", name)
            panels.setdefault(panel, []).append((name, help))
        last = [panel for panel in LAST_PANELS if panel in panels]
        for panel in [*(panel for panel in panels if panel not in last), *last]:
            if panels[panel]:
                with formatter.section(panel):
                    formatter.write_dl(panels[panel])


class Commands(TyperGroup):
    """A group of commands, listed by panel, that accepts other spellings of options (see `spelling`)."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        panels: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        width = max(map(len, self.commands))
        for name in self.list_commands(ctx):
            selected = self.commands[name]
            panel = getattr(selected, "rich_help_panel", None)
            row = f"{name:<{width}}", selected.get_short_help_str(formatter.width - 6 - width)
            panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append(row)
        for panel, rows in panels.items():
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in MOVED_COMMANDS and args[0] not in self.commands:
            raise SettingError(MOVED_COMMANDS[args[0]])
        name, found, rest = super().resolve_command(ctx, args)
        if found is None or isinstance(found, TyperGroup):
            return name, found, rest
        words, warnings = respell(str(name), _spellings(found.params), rest)
        for warning in warnings:
            say(f"Warning: {warning}")
        return name, found, words


def _spellings(params: Iterable[Any]) -> list[str]:
    return [word for param in params for word in (*param.opts, *param.secondary_opts)]


app = typer.Typer(
    cls=Commands,
    help="Train multi-label classifiers on partly known labels (yes / no / unknown).",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 110},
)


def command(
    panel: str | None = None, *, name: str | None = None, to: typer.Typer = app
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a function as a command, with an option for each field of its dataclass parameters.

    Parameters
    ----------
    panel : str, optional
        Heading in `partly --help`, one of `PANELS`.
    name : str, optional
        Name of the command; by default that of the function.
    to : typer.Typer, optional
        Group of commands that it belongs to; by default the application itself.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        expanded = expand_options(function)
        to.command(name, cls=Command, rich_help_panel=panel)(expanded)
        return expanded

    return add


def group(name: str, panel: str, help: str) -> typer.Typer:
    """Add a group of commands to the application."""
    commands = typer.Typer(help=help, no_args_is_help=True)
    app.add_typer(commands, name=name, cls=Commands, rich_help_panel=panel)
    return commands
