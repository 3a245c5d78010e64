"""Labels in an `.npz` file: `names`, optional `ids`, and the ternary matrix.

The matrix is `ternary` (int8 [N, L]: +1 yes, -1 no, 0 unknown), or a CSR matrix as `data`, `indices`, `indptr` and
`shape`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from partly.atomic_io import atomic_output
from partly.data.label_semantics import LabelSemantics
from partly.data.matching import reorder_columns
from partly.data.npz import CSR, Arrays, as_csr, as_text, read_npz
from partly.data.paths import error_prefix
from partly.data.protocols import LabelFormat
from partly.errors import DataError
from partly.labels import Labels

SUFFIXES = (".npz",)


def recognizes(path: Path) -> bool:
    return path.suffix.lower() == ".npz" and path.is_file()


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    arrays = read_npz(path, required=("names",), optional=("ids", "ternary", *CSR))
    texts = {name: as_text(arrays, name, path) for name in ("names", "ids") if name in arrays}
    if "ternary" not in arrays and "data" not in arrays:
        raise DataError(f"{path}: has no labels: neither 'ternary' nor {', '.join(CSR)}.")
    z = arrays["ternary"] if "ternary" in arrays else as_csr(arrays, path, "iu")
    with error_prefix(path):
        labels = Labels.from_ternary(z, names=texts["names"], ids=texts.get("ids"))
        return semantics.fill_absent(labels if names is None else reorder_columns(labels, names, str(path)), path)


def write(labels: Labels, path: Path) -> None:
    z = labels.ternary()
    arrays: Arrays = {"ternary": z}
    if labels.sparse:
        arrays = {"data": z.data, "indices": z.indices, "indptr": z.indptr, "shape": np.array(z.shape)}
    arrays["names"] = np.array(labels.names, np.str_)
    if labels.given_ids is not None:
        arrays["ids"] = np.array(labels.ids, np.str_)
    with atomic_output(path) as file:
        np.savez_compressed(file, **arrays)


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
