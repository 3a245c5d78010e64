"""Commands that run a module of this package in another process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import partly


def module_command(module: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that run a module, whatever the working directory is."""
    source = str(Path(partly.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    # -P: do not import files of the working directory.
    return [sys.executable, "-P", "-m", module, *arguments], os.environ | {"PYTHONPATH": paths}
