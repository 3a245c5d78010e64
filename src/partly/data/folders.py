"""Folders that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from partly.errors import DataError
from partly.files import BESIDE


@contextmanager
def making(path: Path) -> Iterator[Path]:
    """A new folder to write to, which takes its name when all is in it. What is there already is not touched."""
    if path.is_dir() and any(path.iterdir()):
        raise DataError(f"{path}: this folder is not empty. Name another one.")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}{BESIDE}")
    try:
        beside.mkdir(parents=True)
        yield beside
        os.replace(beside, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)
