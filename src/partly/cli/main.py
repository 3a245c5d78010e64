"""The command line: parse, call, print. No logic; torch is imported inside the commands."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from contextlib import redirect_stderr
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import partly
from partly.cli import comparison_group, label_group, ledger_group, model_group, question_group, train
from partly.cli.options import Json, Seed
from partly.cli.printing import print_scores, printable, say
from partly.cli.spelling import respelled
from partly.distributed.launched import launched
from partly.distributed.progress import step
from partly.errors import PartlyError, SettingError, Stopped

SERVERS = ("annotate",)  # commands that wait for others: nothing is under way


def _hush(context: typer.Context, quiet: bool) -> None:
    """What is said on the way, and progress, go to stderr, as nothing else does but errors at the end."""
    if context.resilient_parsing:  # a word is completed, nothing is run
        return
    if not quiet and context.info_name not in SERVERS:
        context.with_resource(step(f"partly {context.info_name}"))
    if quiet:
        nowhere = context.with_resource(open(os.devnull, "w"))  # noqa: SIM115, the context closes it
        context.with_resource(redirect_stderr(nowhere))


_quiet = typer.Typer(add_completion=False)  # a command of which nothing is wanted but its option


@_quiet.command()
def _(
    quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", expose_value=False, callback=_hush, help="Say nothing on the way; errors remain."
        ),
    ] = False,
) -> None: ...


(QUIET,) = typer.main.get_command(_quiet).params


class Commands(TyperGroup):
    """Commands that all can be quiet, whoever adds them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and QUIET not in command.params:
            command.params.append(QUIET)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Accept other spellings of the options (`spelling`)."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is None or hasattr(command, "commands"):
            return name, command, rest
        known = (word for param in command.params for word in (*param.opts, *param.secondary_opts))
        words, told = respelled(str(name), known, rest)
        for line in told:
            say(f"Warning: {line}")
        return name, command, words


app = typer.Typer(
    cls=Commands,
    help="Learn multi-label classifiers from partly known labels (yes / no / unknown).",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


app.command("train")(train.command)
for group in (model_group, label_group, comparison_group, question_group):
    app.add_typer(group.commands)
app.add_typer(ledger_group.ledger, name="ledger", cls=Commands)
app.add_typer(ledger_group.vocabulary, name="vocabulary", cls=Commands)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"partly {partly.__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Only for what comes before the command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("demo"),
    items: Annotated[int, typer.Option(help="Digits to learn from.")] = 1200,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train on handwritten digits with one yes known of each, and write a report."""
    from partly.cli.demo import demo as job

    scores = job(out, items=items, seed=seed, say=say)
    print_scores(scores, out / "report.html", as_json)


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning is a line on the console, without the source line that raised it."""
    say(f"Warning: {message}")


def main() -> None:
    """The entry point: errors of ours are one message, not a traceback; a signal ends it with the code of its own."""
    gc.set_threshold(10_000)  # what is imported stays: to look for garbage among it takes a tenth of a short command
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    warnings.showwarning = _say_warning
    try:
        if launched().count > 1 and sys.argv[1:2] != ["train"]:
            raise SettingError("Only `partly train` works with several processes. Start other commands by themselves.")
        app()
    except PartlyError as error:
        print(printable(f"partly: {error}"), file=sys.stderr)
        sys.exit(2)
    except Stopped as stopped:
        print(f"partly: {stopped} Start the same command again to go on.", file=sys.stderr)
        sys.exit(stopped.code)
    except KeyboardInterrupt:  # before typer has begun
        sys.exit(128 + signal.SIGINT)
    except SystemExit as left:
        if type(left.__context__).__name__ == "Abort":  # what typer makes of Ctrl-C
            sys.exit(128 + signal.SIGINT)
        raise
