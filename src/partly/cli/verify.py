"""`partly verify`: check that every file of a run folder is intact."""

from __future__ import annotations

from partly.cli.app import command
from partly.cli.options import Json, RunFolder
from partly.cli.printing import print_json, say


@command("Models")
def verify(run: RunFolder, as_json: Json = False) -> None:
    """Check every file of a run folder for damage.

    Checksums detect damaged files. They do not protect against deliberate changes.
    """
    from partly.engine import verify as check

    checked = list(check(run))
    if not print_json({"run": run, "read": checked}, as_json):
        print("\n".join(checked))
    say(f"{run}: all files are intact.")
