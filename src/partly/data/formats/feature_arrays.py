"""Features as arrays: the matrix in a `.npy` file, which is mapped and never read as a whole, or the arrays of an
`.npz`.

In an `.npz` the matrix is `features`, or a sparse one as `scipy.sparse.save_npz` writes it (`data`, `indices`, `indptr`
and `shape`); `ids` and `feature_names` may come along.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from partly.atomic_io import atomic_output, write_npy
from partly.data.dataset import Dataset, empty_labels
from partly.data.matching import refuse_unwritable
from partly.data.npz import CSR, Arrays, as_csr, as_text, npz_names, read_npz
from partly.data.paths import check_file, error_prefix
from partly.data.protocols import DatasetFormat
from partly.errors import DataError
from partly.items import Items, SparseRows, map_npy, matrix_rows, sparse_features
from partly.labels.names import check_ids

SUFFIXES = (".npy", ".npz")
BLOCK = 1 << 14  # items written at a time


def recognizes(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.exists()


def read(path: Path, semantics: object = None) -> Dataset:
    path = check_file(path, SUFFIXES)
    if path.suffix.lower() == ".npy":
        items: Items = map_npy(path)
        return Dataset(items, empty_labels(map(str, range(len(items)))))
    sparse = "features" not in npz_names(path) and set(CSR) <= set(npz_names(path))
    arrays = read_npz(path, required=CSR if sparse else ("features",), optional=("ids", "feature_names", "format"))
    form = arrays["format"].item() if "format" in arrays else b"csr"
    if form not in (b"csr", "csr"):
        raise DataError(f"{path}: a sparse matrix of the form {form!r}. Save it by rows: save_npz(path, x.tocsr()).")
    texts = {name: as_text(arrays, name, path) for name in ("ids", "feature_names") if name in arrays}
    names = tuple(texts["feature_names"]) if "feature_names" in texts else None
    width = int(arrays["shape"][-1] if sparse and arrays["shape"].size else arrays["features"].shape[-1])
    if names is not None and len(names) != width:
        raise DataError(f"{path}: {len(names)} feature_names for {width} features.")
    if sparse:
        items = sparse_features(as_csr(arrays, path, "biuf"), str(path), names)
    else:
        items = matrix_rows(arrays["features"], str(path), names)
    with error_prefix(path):
        return Dataset(items, empty_labels(check_ids(texts.get("ids", range(len(items))), len(items))))


def write(data: Dataset, path: Path) -> None:
    items = data.items
    if items.kind != "features":
        raise DataError(f"{path}: this format holds features; these items are {items.kind}.")
    refuse_unwritable(data.labels.given_ids or (), items.names or (), path)
    with atomic_output(path) as file:
        if path.suffix.lower() == ".npy":
            if data.labels.given_ids is not None or items.names is not None:
                raise DataError(f"{path}: would lose the ids of the items or the names of the features. Write an .npz.")
            blocks = (items.take(slice(i, i + BLOCK)).numpy() for i in range(0, len(items), BLOCK))
            write_npy(file, (len(items), *items.shape), np.dtype(np.float32), blocks)
            return
        texts: Arrays = {} if items.names is None else {"feature_names": np.array(items.names, np.str_)}
        if data.labels.given_ids is not None:
            texts["ids"] = np.array(data.labels.ids, np.str_)
        np.savez_compressed(file, **texts, **_arrays(items))


def _arrays(items: Items) -> Arrays:
    if isinstance(items, SparseRows):
        z = sp.csr_array(items.matrix if items.rows is None else items.matrix[items.rows])
        return {"data": z.data, "indices": z.indices, "indptr": z.indptr, "shape": np.array(z.shape)}
    return {"features": items.take(slice(None)).numpy()}


FORMAT = DatasetFormat("items", recognizes, read, write, suffixes=SUFFIXES)
