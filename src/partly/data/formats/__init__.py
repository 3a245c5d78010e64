"""Formats are discovered: every file in this folder that defines `FORMAT` is one, under the name of the file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal, overload

from partly.data.formats import ledger_db
from partly.data.paths import format_suffix
from partly.data.protocols import DatasetFormat, Format, Holds, LabelFormat
from partly.data.tables import READABLE, SUFFIXES
from partly.errors import DataError, SettingError, did_you_mean


@cache
def discover() -> dict[str, Format]:
    """Return every format by name (file name, `_` written `-`)."""
    stems = sorted(module.name for module in pkgutil.iter_modules(importlib.import_module(__name__).__path__))
    modules = {stem.replace("_", "-"): importlib.import_module(f"{__name__}.{stem}") for stem in stems}
    return {name: module.FORMAT for name, module in modules.items()}


@overload
def formats(holds: Literal["labels"]) -> dict[str, LabelFormat]: ...


@overload
def formats(holds: Literal["items", "dataset"]) -> dict[str, DatasetFormat]: ...


@overload
def formats(holds: Holds) -> dict[str, Format]: ...


def formats(holds: Holds) -> object:
    """Return the formats that hold labels, items or both, by name."""
    return {name: one for name, one in discover().items() if one.holds == holds}


def suffixes(*holds: Holds) -> tuple[str, ...]:
    """Return the endings of files that can be written in one of these formats."""
    return _endings(one for what in holds for one in formats(what).values() if one.write is not None)


def _endings(those: Iterable[Format]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(end for one in those for end in one.suffixes))


def readable(*holds: Holds) -> tuple[str, ...]:
    """Return the endings of files that can be read in one of these formats."""
    return tuple(dict.fromkeys((*_endings(one for what in holds for one in formats(what).values()), *READABLE)))


def readable_by(one: Format) -> tuple[str, ...]:
    """Return the endings of files that can be read in this format."""
    return READABLE if one.suffixes == SUFFIXES else one.suffixes


@overload
def of(path: Path, holds: Literal["labels"]) -> LabelFormat | None: ...


@overload
def of(path: Path, holds: Literal["items", "dataset"]) -> DatasetFormat | None: ...


def of(path: Path, holds: Holds) -> object:
    """Return the format of a file among those that hold this. No other format may open a database: only SQLite may
    (`ledger.location.is_sqlite`)."""
    if ledger_db.recognizes(path):
        return ledger_db.FORMAT if holds == ledger_db.FORMAT.holds else None
    return next((one for one in formats(holds).values() if one.recognizes(path)), None)


@overload
def by_name(name: str, *holds: Literal["labels"]) -> LabelFormat: ...


@overload
def by_name(name: str, *holds: Holds) -> Format: ...


def by_name(name: str, *holds: Holds) -> object:
    """Return the format of this name."""
    there = {key: one for key, one in discover().items() if one.holds in holds}
    if name not in there:
        raise SettingError(f"There is no form {name!r}.{did_you_mean(name, there)}")
    return there[name]


def by_suffix(path: Path, holds: Literal["items", "dataset"]) -> DatasetFormat:
    """Return the format in which a file of this name is written."""
    for one in formats(holds).values():
        if format_suffix(path) in one.suffixes and one.write is not None:
            return one
    raise DataError(f"{path}: no format writes {holds} to such a file. Available: {', '.join(suffixes(holds))}.")
