"""Formats are found, not listed: a file in this folder that defines `recognises(path)` is one.

It says in HOLDS what it holds. "labels": `read(path, names, meaning) -> Labels` and `write(labels, path)`; "items":
`read(path, meaning) -> Dataset` whose labels have no columns; "dataset": `read(path, meaning) -> Dataset`, and for both
`write(data, path)`. `meaning` is what the caller says of that which a file leaves open. Where SAYS is "yes", a file
lists what is there and nothing else. A format in a folder has no SUFFIXES.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType

from partly.data import ledger_db
from partly.data.paths import kind_of
from partly.data.tables import READABLE, SUFFIXES
from partly.errors import DataError, SettingError, did_you_mean


@cache
def formats(holds: str) -> dict[str, ModuleType]:
    """Every format that holds this, by name (file name, `_` written `-`)."""
    folder = importlib.import_module("partly.data")
    stems = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    modules = {stem.replace("_", "-"): importlib.import_module(f"partly.data.{stem}") for stem in stems}
    return {name: module for name, module in modules.items() if getattr(module, "HOLDS", None) == holds}


def suffixes(*holds: str) -> tuple[str, ...]:
    """All that files may end in to be written as one of these formats."""
    return _ends(one for what in holds for one in formats(what).values() if hasattr(one, "write"))


def _ends(modules: Iterable[ModuleType]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(end for one in modules for end in getattr(one, "SUFFIXES", ())))


def readable(*holds: str) -> tuple[str, ...]:
    """All that files may end in to be read as one of these formats."""
    ends = _ends(one for what in holds for one in formats(what).values())
    return tuple(dict.fromkeys((*ends, *READABLE)))


def readable_by(one: ModuleType) -> tuple[str, ...]:
    """All that files may end in to be read as this format."""
    ends: tuple[str, ...] = one.SUFFIXES
    return READABLE if ends == SUFFIXES else ends


def of(path: Path, holds: str) -> ModuleType | None:
    """The format of this file, if it is one of those that hold this. No other format is asked about a database: only
    SQLite may open one (`places.is_sqlite`)."""
    if ledger_db.recognises(path):
        return ledger_db if holds == ledger_db.HOLDS else None
    return next((one for one in formats(holds).values() if one.recognises(path)), None)


def by_name(name: str, *holds: str) -> ModuleType:
    """The format of this name."""
    there = {key: one for what in holds for key, one in formats(what).items()}
    if name not in there:
        raise SettingError(f"There is no form {name!r}.{did_you_mean(name, there)}")
    return there[name]


def by_suffix(path: Path, holds: str) -> ModuleType:
    """The format in which such a file is written."""
    for one in formats(holds).values():
        if kind_of(path) in getattr(one, "SUFFIXES", ()) and hasattr(one, "write"):
            return one
    raise DataError(f"{path}: no format writes {holds} to such a file. There is: {', '.join(suffixes(holds))}.")
