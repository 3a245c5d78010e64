"""Discovery of formats: every file in this folder defines one as `FORMAT`, under the name of the file."""

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
    return {name: form for name, form in discover().items() if form.holds == holds}


def suffixes(*holds: Holds) -> tuple[str, ...]:
    """Return the endings of files that can be written in one of these formats."""
    return _endings(form for what in holds for form in formats(what).values() if form.write is not None)


def _endings(forms: Iterable[Format]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(end for form in forms for end in form.suffixes))


def readable(*holds: Holds) -> tuple[str, ...]:
    """Return the endings of files that can be read in one of these formats."""
    return tuple(dict.fromkeys((*_endings(form for what in holds for form in formats(what).values()), *READABLE)))


def readable_by(form: Format) -> tuple[str, ...]:
    """Return the endings of files that can be read in this format."""
    return READABLE if form.suffixes == SUFFIXES else form.suffixes


@overload
def of(path: Path, holds: Literal["labels"]) -> LabelFormat | None: ...


@overload
def of(path: Path, holds: Literal["items", "dataset"]) -> DatasetFormat | None: ...


def of(path: Path, holds: Holds) -> object:
    """Return the format of a file among those that hold this; None if no format recognizes it.

    A database is never opened by another format, because only SQLite may open it (`ledger.location.is_sqlite`).
    """
    if ledger_db.recognizes(path):
        return ledger_db.FORMAT if holds == ledger_db.FORMAT.holds else None
    return next((form for form in formats(holds).values() if form.recognizes(path)), None)


@overload
def by_name(name: str, *holds: Literal["labels"]) -> LabelFormat: ...


@overload
def by_name(name: str, *holds: Holds) -> Format: ...


def by_name(name: str, *holds: Holds) -> object:
    """Return the format of this name."""
    known = {key: form for key, form in discover().items() if form.holds in holds}
    if name not in known:
        raise SettingError(f"There is no form {name!r}.{did_you_mean(name, known)}")
    return known[name]


def by_suffix(path: Path, holds: Literal["items", "dataset"]) -> DatasetFormat:
    """Return the format in which a file of this name is written."""
    for form in formats(holds).values():
        if format_suffix(path) in form.suffixes and form.write is not None:
            return form
    raise DataError(f"{path}: no format writes {holds} to such a file. Available: {', '.join(suffixes(holds))}.")
