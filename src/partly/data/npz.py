"""Arrays in `.npz` files. Nothing that could execute code is read."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from partly.budget import Budget
from partly.errors import DataError, PartlyError

CSR = ("data", "indices", "indptr", "shape")
Arrays = dict[str, Any]


def read_npz(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """The arrays of these names; the others in the file are left alone."""
    with damage(path), zipfile.ZipFile(path) as archive:
        there = [name.removesuffix(".npy") for name in archive.namelist()]
        missing = [name for name in required if name not in there]
        if missing:
            raise DataError(
                f"{path}: there is no array {', '.join(missing)}; there is: {', '.join(there) or 'nothing'}."
            )
        wanted = (*required, *(name for name in optional if name in there))
        budget, arrays = Budget(path), {}
        budget.hold(sum(archive.getinfo(f"{name}.npy").file_size for name in wanted))
        for name in wanted:
            with archive.open(f"{name}.npy") as file:
                arrays[name] = _array(file)
                budget.hold_rows(len(arrays[name]) if arrays[name].ndim == 2 else 0)  # it may have no columns
    return arrays


def npz_names(path: Path) -> list[str]:
    with damage(path), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def as_text(arrays: Arrays, name: str, path: Path) -> list[str]:
    words = arrays[name]
    if words.ndim != 1 or words.dtype.kind != "U":
        raise DataError(f"{path}: the array {name!r} must be text in one dimension; it is {words.dtype} {words.shape}.")
    return [str(word) for word in words]


def _array(file: IO[bytes]) -> Any:
    array = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):  # at its end an archive also compares the checksum
        raise DataError("there is more in it than its header says")
    return array


def as_csr(arrays: Arrays, path: Path, kinds: str) -> Any:
    """The CSR matrix whose parts are among the arrays; kinds: of the numbers in it."""
    missing = [name for name in CSR if name not in arrays]
    if missing:
        raise DataError(f"{path}: of a sparse matrix there is no {', '.join(missing)}.")
    with damage(path):
        data, indices, indptr, shape = (arrays[name] for name in CSR)
        wrong = [part for part in (indices, indptr, shape) if part.ndim != 1 or part.dtype.kind not in "iu"]
        if wrong or data.ndim != 1 or data.dtype.kind not in kinds:
            raise DataError(f"{', '.join(CSR)} must be numbers in one dimension, all but data whole ones")
        z = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        z.check_format(full_check=True)
        z.sort_indices()
        if not z.has_canonical_format:
            raise DataError("an entry occurs more than once")
        return z


@contextmanager
def damage(path: Path) -> Iterator[None]:
    """A damaged file can fail in a dozen ways (zip, zlib, header, memory, shape): all of them mean one thing."""
    try:
        yield
    except Exception as error:
        told = str(error) if isinstance(error, PartlyError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: cannot be read ({told}).") from error
