"""Matching what two files say of the same items, by id."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from partly.data.features import Features, read_features
from partly.data.files import PathLike
from partly.errors import DataError, listing


def positions(wanted: Sequence[str], there: Sequence[str], file: PathLike, what: str) -> npt.NDArray[np.int64]:
    """Where each wanted word stands in `there`, which came from `file`; all that are missing in one message."""
    at = {word: i for i, word in enumerate(there)}
    missing = [word for word in wanted if word not in at]
    if missing:
        raise DataError(
            f"{file}: {len(missing)} of the {len(wanted)} {what}s are not in it"
            + listing((repr(word) for word in missing), len(missing))
        )
    return np.array([at[word] for word in wanted], dtype=np.int64)


def read_matching(path: PathLike, ids: Sequence[str]) -> Features:
    """The features of these items, in this order."""
    x, there = read_features(path)
    return x[positions(ids, there, path, "item")]
