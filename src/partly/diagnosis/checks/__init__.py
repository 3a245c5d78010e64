"""Checks of the doctor, one per file; a file dropped in here is a check.

A file defines `check(patient) -> list[Finding]` and says in `NEEDS` what it looks at: "labels", "items", "features"
(of which scores can be made) or "test". On data that has not what it looks for, it finds nothing, or says that all is
fine.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from partly import catalogue


def discover() -> dict[str, catalogue.Info]:
    """Every check in the folder, by name (file name, `_` written `-`)."""
    return catalogue.folder(__name__, "check", _check, catalogue.Info)


def _check(module: types.ModuleType) -> Callable[..., Any]:
    made: Callable[..., Any] = module.check
    return made
