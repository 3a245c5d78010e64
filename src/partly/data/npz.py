"""Arrays in `.npy` and `.npz` files, and Labels as such arrays. Nothing that could execute code is read.

Labels in an `.npz`: `names` and, where given, `ids` (text), and either `ternary` (int8 [N, L]: +1 yes, -1 no,
0 unknown) or the parts of a CSR matrix, `data`, `indices`, `indptr` and `shape`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from partly.data.files import naming, replacing
from partly.data.names import arranged
from partly.errors import DataError, PartlyError
from partly.labels import Labels

CSR = ("data", "indices", "indptr", "shape")
Arrays = dict[str, Any]


def read_labels_npz(path: Path, names: Sequence[str] | None) -> Labels:
    arrays = read_npz(path, required=("names",), optional=("ids", "ternary", *CSR))
    words = {name: as_text(arrays, name, path) for name in ("names", "ids") if name in arrays}
    z = arrays["ternary"] if "ternary" in arrays else _csr(arrays, path)
    with naming(path):
        labels = Labels.from_ternary(z, names=words["names"], ids=words.get("ids"))
        return labels if names is None else arranged(labels, names, str(path))


def write_labels_npz(labels: Labels, path: Path) -> None:
    z = labels.ternary()
    arrays: Arrays = {"ternary": z}
    if labels.sparse:
        arrays = {"data": z.data, "indices": z.indices, "indptr": z.indptr, "shape": np.array(z.shape)}
    arrays["names"] = np.array(labels.names, np.str_)
    if labels._ids is not None:
        arrays["ids"] = np.array(labels.ids, np.str_)
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)


def read_npz(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> Arrays:
    """The arrays of these names; the others in the file are left alone."""
    with _damage(path), zipfile.ZipFile(path) as archive:
        there = [name.removesuffix(".npy") for name in archive.namelist()]
        missing = [name for name in required if name not in there]
        if missing:
            raise DataError(
                f"{path}: there is no array {', '.join(missing)}; there is: {', '.join(there) or 'nothing'}."
            )
        arrays = {}
        for name in (*required, *(name for name in optional if name in there)):
            with archive.open(f"{name}.npy") as file:
                arrays[name] = _array(file)
    return arrays


def npz_names(path: Path) -> list[str]:
    with _damage(path), zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_npy(path: Path) -> Any:
    with _damage(path), path.open("rb") as file:
        return _array(file)


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


def _csr(arrays: Arrays, path: Path) -> Any:
    missing = [name for name in CSR if name not in arrays]
    if missing:
        raise DataError(f"{path}: holds no labels: there is neither 'ternary' nor {', '.join(missing)}.")
    with _damage(path):
        data, indices, indptr, shape = (arrays[name] for name in CSR)
        if any(part.ndim != 1 or part.dtype.kind not in "iu" for part in (data, indices, indptr, shape)):
            raise DataError(f"{', '.join(CSR)} must be whole numbers in one dimension")
        z = sp.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        z.check_format(full_check=True)
        z.sort_indices()
        if not z.has_canonical_format:
            raise DataError("an entry occurs more than once")
        return z


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """A damaged file can fail in a dozen ways (zip, zlib, header, memory, shape): all of them mean one thing."""
    try:
        yield
    except Exception as error:
        told = str(error) if isinstance(error, PartlyError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: cannot be read ({told}).") from error
