"""Arrays that may not fit into memory: large ones are memory-mapped from a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError

Floats = npt.NDArray[np.float32]
MAX_IN_MEMORY = 1 << 24  # numbers


def allocate(shape: tuple[int, int]) -> Floats:
    """Return an uninitialized float32 array; a large one is mapped from a file that is removed with the array."""
    if shape[0] * shape[1] <= MAX_IN_MEMORY:
        return np.empty(shape, np.float32)
    try:
        with tempfile.TemporaryFile() as file:
            array: Floats = np.memmap(file, np.float32, "w+", shape=shape)
            return array
    except OSError as error:
        raise _no_space(error) from error


def stack(blocks: Iterable[npt.NDArray[Any]], width: int) -> Floats:
    """Stack blocks [B, width]; beyond `MAX_IN_MEMORY` numbers they are written to a temporary file."""
    in_memory: list[npt.NDArray[Any]] = [np.empty((0, width), np.float32)]
    count, file = 0, None
    try:
        for block in blocks:
            count += len(block)
            if file is None and count * width > MAX_IN_MEMORY:
                file = tempfile.TemporaryFile()  # noqa: SIM115 (closed below)
                for array in in_memory:
                    array.tofile(file)
                in_memory = []
            values = np.ascontiguousarray(block, np.float32)
            if file is None:
                in_memory.append(values)
            else:
                values.tofile(file)
        if file is None:
            return np.concatenate(in_memory)
        file.flush()
        mapped: Floats = np.memmap(file, np.float32, "r", shape=(count, width))
        return mapped
    except OSError as error:
        raise _no_space(error) from error
    finally:
        if file is not None:
            file.close()


def _no_space(error: OSError) -> DataError:
    return DataError(
        f"Scores cannot be stored in {tempfile.gettempdir()} ({error.strerror or error}). Set TMPDIR to a folder with "
        "enough space."
    )
