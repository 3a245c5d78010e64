"""Cache expensive matrices in the cache folder. Each is identified by a key: all that its content depends on.

A matrix is computed block by block into a memory-mapped file. The number of finished rows is written after the block
is on the disk, so an interrupted computation continues where it stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import atomic_io
from partly.errors import CheckpointError, DataError
from partly.images.progress import track_progress
from partly.images.scan import cache_folder

ARRAY, KEY, DONE = "matrix.npy", "key.json", "done.json"
SAVE_SECONDS = 10.0


def load_or_compute(
    key: dict[str, Any],
    shape: tuple[int, int],
    compute: Callable[[slice], npt.NDArray[np.float32]],
    block: int,
    title: str,
) -> npt.NDArray[np.float32]:
    """Return the matrix [N, D] of this key, memory-mapped; compute the missing blocks of rows."""
    digest = atomic_io.sha256(json.dumps(key, sort_keys=True).encode())
    folder = cache_folder() / "teachers" / digest[:32]
    with atomic_io.locked(folder, wait=True):  # another process may compute the same matrix
        done = _count_finished_rows(folder)
        if done < shape[0] or not (folder / ARRAY).exists():
            array = _open_mapped(folder, shape, done)
            blocks = [slice(i, min(i + block, shape[0])) for i in range(done, shape[0], block)]
            saved = time.monotonic()
            try:
                for rows in track_progress(blocks, shape[0] - done, title, weight=lambda part: part.stop - part.start):
                    values = compute(rows)
                    if np.isinf(values).any():
                        raise DataError(
                            f"{title}: items {rows.start} to {rows.stop - 1} have values that are not finite."
                        )
                    array[rows], done = values, rows.stop
                    if time.monotonic() - saved >= SAVE_SECONDS:
                        _save(folder, array, done)
                        saved = time.monotonic()
            finally:  # what was computed before a failure is kept
                _save(folder, array, done)
            atomic_io.write_json(folder / KEY, key)
    kept: npt.NDArray[np.float32] = np.load(folder / ARRAY, mmap_mode="r")
    return kept


def _count_finished_rows(folder: Path) -> int:
    try:
        return int(json.loads((folder / DONE).read_text("utf-8"))["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _open_mapped(folder: Path, shape: tuple[int, int], done: int) -> Any:
    path = folder / ARRAY
    if path.is_symlink():
        raise CheckpointError(f"{path}: is a link, through which nothing is written. Remove it and start again.")
    with atomic_io.disk_errors(folder):
        if done and path.exists():
            array = np.lib.format.open_memmap(path, mode="r+")
            if array.shape == shape and array.dtype == np.float32:
                return array
        if done:
            raise CheckpointError(f"{path}: damaged. Remove {folder} and start again.")
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(np.float32), shape=shape)


def _save(folder: Path, array: Any, count: int) -> None:
    with atomic_io.disk_errors(folder):
        array.flush()
    atomic_io.write_json(folder / DONE, {"done": count})
