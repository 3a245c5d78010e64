"""Entry point of the `partly` command: import every command, run one, print errors as one message."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import signal
import sys
import warnings
from typing import Annotated, Any

import typer

import partly
from partly import cli
from partly.cli.app import app
from partly.cli.printing import printable, say
from partly.distributed.launched import current_rank
from partly.errors import PartlyError, SettingError, Stopped

for _module in pkgutil.iter_modules(cli.__path__):
    if not _module.name.startswith("_"):  # those are imported by commands when they run
        importlib.import_module(f"{cli.__name__}.{_module.name}")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"partly {partly.__version__}")
        raise typer.Exit


@app.callback()
def _before_any_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Define the options that come before the command."""


def _print_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line, without the source line that raised it."""
    say(f"Warning: {message}")


def main() -> None:
    """Run `partly`: errors end it with code 2 and one message, signals with 128 plus their number."""
    gc.set_threshold(10_000)  # imported objects stay alive: scanning them takes a tenth of a short command
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    warnings.showwarning = _print_warning
    try:
        if current_rank().count > 1 and sys.argv[1:2] != ["train"]:
            raise SettingError("Only `partly train` supports several processes. Run other commands as one process.")
        app()
    except PartlyError as error:
        print(printable(f"partly: {error}"), file=sys.stderr)
        sys.exit(2)
    except Stopped as stopped:
        print(f"partly: {stopped} Run the same command again to resume.", file=sys.stderr)
        sys.exit(stopped.code)
    except KeyboardInterrupt:  # before Typer has started
        sys.exit(128 + signal.SIGINT)
    except SystemExit as error:
        if type(error.__context__).__name__ == "Abort":  # how Typer reports Ctrl-C
            sys.exit(128 + signal.SIGINT)
        raise
