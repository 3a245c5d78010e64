"""Arrays in `.npz` files. Pickled objects, which could execute code, are not read."""

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
    """Read the arrays of these names; other arrays of the file are ignored."""
    with read_errors(path), zipfile.ZipFile(path) as archive:
        present = [name.removesuffix(".npy") for name in archive.namelist()]
        missing = [name for name in required if name not in present]
        if missing:
            raise DataError(
                f"{path}: there is no array {', '.join(missing)}; found: {', '.join(present) or 'nothing'}."
            )
        wanted = (*required, *(name for name in optional if name in present))
        budget, arrays = Budget(path), {}
        budget.hold(sum(archive.getinfo(f"{name}.npy").file_size for name in wanted))
        for name in wanted:
            with archive.open(f"{name}.npy") as file:
                arrays[name] = _array(file)
                budget.hold_rows(len(arrays[name]) if arrays[name].ndim == 2 else 0)  # it may have no columns
    return arrays


def npz_names(path: Path) -> list[str]:
    with read_errors(path), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def as_text(arrays: Arrays, name: str, path: Path) -> list[str]:
    texts = arrays[name]
    if texts.ndim != 1 or texts.dtype.kind != "U":
        raise DataError(f"{path}: the array {name!r} must be text in one dimension; it is {texts.dtype} {texts.shape}.")
    return [str(text) for text in texts]


def _array(file: IO[bytes]) -> Any:
    array = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):  # reading to the end also verifies the checksum
        raise DataError("it is longer than its header says")
    return array


def as_csr(arrays: Arrays, path: Path, kinds: str) -> Any:
    """Build a CSR matrix from its parts; `kinds` are the allowed kinds of its numbers."""
    missing = [name for name in CSR if name not in arrays]
    if missing:
        raise DataError(f"{path}: parts of the sparse matrix are missing: {', '.join(missing)}.")
    with read_errors(path):
        data, indices, indptr, shape = (arrays[name] for name in CSR)
        wrong = [part for part in (indices, indptr, shape) if part.ndim != 1 or part.dtype.kind not in "iu"]
        if wrong or data.ndim != 1 or data.dtype.kind not in kinds:
            raise DataError(f"{', '.join(CSR)} must be one-dimensional numbers, and all but data whole numbers")
        z = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        z.check_format(full_check=True)
        z.sort_indices()
        if not z.has_canonical_format:
            raise DataError("an entry occurs more than once")
        return z


@contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn all errors into DataError: damaged files fail in many ways (zip, zlib, header, memory, shape)."""
    try:
        yield
    except Exception as error:
        reason = str(error) if isinstance(error, PartlyError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: cannot be read ({reason}).") from error
