"""Features in a `.npy` file, mapped into memory: only the rows that are asked for are read.

A file beside it, `NAME.npy.sha256` as `sha256sum NAME.npy` prints it, is taken for its digest, unless the features are
newer: then they need not be read through to say which they are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from partly.budget import Budget
from partly.errors import DataError
from partly.items.arrays import Arrays


def map_npy(path: Path) -> Arrays:
    """The matrix in a file, as items; whether its numbers are finite shows when they are read."""
    try:
        # "c": nothing is ever written to the file, but torch may believe that it could be.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except Exception as error:  # a forged header fails in a dozen ways: syntax, recursion, overflow, memory
        raise DataError(f"{path}: cannot be read ({error}).") from error
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        kind = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "an archive"
        raise DataError(f"{path}: features must be a matrix of numbers, items x features; got {kind}.")
    Budget(path).hold_rows(len(array))  # a matrix without columns takes no bytes, and its items have names
    mapped: Any = array
    if mapped.offset + array.nbytes != path.stat().st_size:
        raise DataError(f"{path}: cannot be read (there is more in it than its header says).")
    return Arrays(array, file_digest=_digest_beside(path), where=str(path))


def _digest_beside(path: Path) -> str | None:
    beside = path.with_name(f"{path.name}.sha256")
    if not beside.is_file() or beside.stat().st_mtime < path.stat().st_mtime:
        return None
    word = beside.read_text("utf-8", errors="replace").split()[:1]
    if not word or not re.fullmatch("[0-9a-f]{64}", word[0]):
        raise DataError(f"{beside}: should hold a digest, as `sha256sum {path.name}` prints it.")
    return word[0]
