"""Labels in a `.npy` file: 1 yes, 0 no, NaN unknown, as in a wide table; -1 is what the caller says (`uncertain=`).
There is no place for ids and names, so both are positions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from partly.data.label_semantics import CODES, LabelSemantics, hold_entries, how_to_say
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
    unsure = np.zeros(values.shape, bool)
    if semantics.uncertain is not None and values.dtype.kind in "iuf":
        unsure = values == -1
        values = np.where(unsure, np.nan, values)
    if names is not None and len(names) == values.shape[1]:
        return _labels(path, values, unsure, semantics, names)
    found = _labels(path, values, unsure, semantics, None)
    return found if names is None else semantics.filled(reorder_columns(found, names, str(path)), path)


def _labels(path: Path, values: Any, unsure: Any, semantics: LabelSemantics, names: Sequence[str] | None) -> Labels:
    try:
        with error_prefix(path):
            labels = Labels.from_nan(values, names=names, missing=semantics.missing)
    except DataError as error:
        raise DataError(f"{error} A -1 that is neither yes nor no: {how_to_say('uncertain')}") from None
    hold_entries(labels.shape, path)
    z = labels.rows(slice(None)).copy()
    z[unsure] = CODES[semantics.uncertain or "unknown"]
    return Labels.from_ternary(np.where((z == 0) & ~unsure & (semantics.absent == "no"), -1, z), names=labels.names)


def _matrix(path: Path) -> Any:
    """The array of a file, [N, L]; one of a single dimension is one label."""
    try:
        with np.errstate(over="raise"):  # of a shape that no file can have
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
