"""Files with the names of labels, and with their guidelines."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from partly.errors import DataError

if TYPE_CHECKING:
    from partly.labels.guidelines import Guideline


def read_labels(path: Path) -> tuple[list[str], dict[str, Guideline]]:
    """Read label names, with their guidelines where the file is TOML."""
    from partly.labels.guidelines import read_guidelines

    if path.suffix.lower() != ".toml":
        return read_names(path), {}
    try:
        names = list(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        names = []  # `read_guidelines` says what is wrong
    guidelines = read_guidelines(path, names)
    if not names:
        raise DataError(f'{path}: holds no labels. Write lines such as cat = "A living cat."')
    return names, guidelines


def read_described_names(path: Path) -> tuple[list[str], dict[str, str | list[str]]]:
    """Read label names, with phrasings where the file is TOML."""
    from partly.teachers.wording import read_descriptions

    if path.suffix.lower() != ".toml":
        return read_names(path), {}
    descriptions = read_descriptions(path)
    if not descriptions:
        raise DataError(f'{path}: holds no labels. Write lines such as cat = "a small animal".')
    return list(descriptions), descriptions


def read_names(path: Path) -> list[str]:
    """Read label names, one per line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Write one label name per line.") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise DataError(f"{path}: holds no names. Write one label name per line.")
    if path.suffix.lower() in (".csv", ".tsv") and any(mark in names[0] for mark in ",\t"):
        raise DataError(f"{path}: is a table. Give a text file with one label name per line.")
    return names
