"""Labels in a `.npy` file: 1 yes, 0 no, NaN unknown, as in a wide table; the caller chooses the value of -1.

The format has no ids and names; both are positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from partly.data.label_semantics import CODES, LabelSemantics, describe_option, hold_entries
from partly.data.matching import reorder_columns
from partly.data.paths import check_file, error_prefix
from partly.data.protocols import LabelFormat
from partly.errors import DataError
from partly.labels import Labels

SUFFIXES = (".npy",)


def recognizes(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and path.is_file()


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    values = _matrix(check_file(path, SUFFIXES))
    uncertain = np.zeros(values.shape, bool)
    if semantics.uncertain is not None and values.dtype.kind in "iuf":
        uncertain = values == -1
        values = np.where(uncertain, np.nan, values)
    if names is not None and len(names) == values.shape[1]:
        return _labels(path, values, uncertain, semantics, names)
    labels = _labels(path, values, uncertain, semantics, None)
    return labels if names is None else semantics.fill_absent(reorder_columns(labels, names, str(path)), path)


def _labels(path: Path, values: Any, uncertain: Any, semantics: LabelSemantics, names: Sequence[str] | None) -> Labels:
    try:
        with error_prefix(path):
            labels = Labels.from_nan(values, names=names, missing=semantics.missing)
    except DataError as error:
        raise DataError(f"{error} If -1 means uncertain: {describe_option('uncertain')}") from None
    hold_entries(labels.shape, path)
    z = labels.rows(slice(None)).copy()
    z[uncertain] = CODES[semantics.uncertain or "unknown"]
    return Labels.from_ternary(np.where((z == 0) & ~uncertain & (semantics.absent == "no"), -1, z), names=labels.names)


def _matrix(path: Path) -> Any:
    """Read the array of a file as [N, L]; one dimension is one label."""
    try:
        with np.errstate(over="raise"):  # for an impossible shape
            array: Any = np.lib.format.open_memmap(path, mode="r")
    except (
        FloatingPointError,
        OSError,
        ValueError,
        EOFError,
        OverflowError,
        SyntaxError,
        TokenError,
        TypeError,
    ) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error
    if isinstance(array, np.ndarray) and array.ndim == 1:
        array = array[:, None]
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "biufU" or 0 in array.shape:
        kind = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "an archive"
        raise DataError(f"{path}: labels must be a matrix, items x labels, of 1, 0 and NaN; got {kind}.")
    return np.asarray(array)


FORMAT = LabelFormat(recognizes, read, suffixes=SUFFIXES)
