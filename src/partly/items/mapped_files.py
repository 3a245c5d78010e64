"""Memory-mapped features in a `.npy` file: only the rows in use are read.

If there is a file `NAME.npy.sha256` in the format of `sha256sum` that is not older than the features, its digest is
used, so that the features need not be read to compute one.
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
    """Map the matrix in a file; its numbers are checked when they are read."""
    try:
        # "c" (copy on write): nothing is written to the file, but torch needs a writable array.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except Exception as error:  # a forged header fails in a dozen ways: syntax, recursion, overflow, memory
        raise DataError(f"{path}: cannot be read ({error}).") from error
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biuf":
        kind = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "an archive"
        raise DataError(f"{path}: features must be a matrix of numbers, items x features; got {kind}.")
    Budget(path).hold_rows(len(array))  # a matrix without columns takes no bytes, but its items have ids
    mapped: Any = array
    if mapped.offset + array.nbytes != path.stat().st_size:
        raise DataError(f"{path}: cannot be read (it is longer than its header says).")
    return Arrays(array, file_digest=_read_digest(path), where=str(path))


def _read_digest(path: Path) -> str | None:
    digest_file = path.with_name(f"{path.name}.sha256")
    if not digest_file.is_file() or digest_file.stat().st_mtime < path.stat().st_mtime:
        return None
    word = digest_file.read_text("utf-8", errors="replace").split()[:1]
    if not word or not re.fullmatch("[0-9a-f]{64}", word[0]):
        raise DataError(f"{digest_file}: must hold a digest in the format of `sha256sum {path.name}`.")
    return word[0]
