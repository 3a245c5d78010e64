"""Processes of our own: `python -m partly...`, whatever folder or script this one was started from."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def program(module: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that run a module of this package."""
    import partly

    source = str(Path(partly.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    # -P: a file of the folder that somebody happens to be in is not imported.
    return [sys.executable, "-P", "-m", module, *arguments], os.environ | {"PYTHONPATH": paths}
