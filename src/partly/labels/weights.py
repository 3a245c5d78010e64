"""Validation of sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from partly.errors import DataError, listing
from partly.labels.align import align_table_columns
from partly.labels.labels import Labels

Weights = npt.NDArray[np.float32]


def check_weights(sample_weight: Any, labels: Labels) -> Weights | None:
    """Return weights of items [N, 1] or entries [N, L], scaled so that the positive ones have mean 1."""
    if sample_weight is None:
        return None
    try:
        array = np.asarray(align_table_columns(sample_weight, labels.names, "sample_weight"), np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight: should be numbers ({error}).") from None
    count, width = labels.shape
    array = array[:, None] if array.ndim == 1 else array
    if array.shape not in {(count, 1), (count, width)}:
        raise DataError(
            f"sample_weight has the shape {list(np.shape(sample_weight))}; it should have one number for each item, "
            f"[{count}], or for each entry, [{count}, {width}]."
        )
    wrong = np.argwhere(~(np.isfinite(array) & (array >= 0)))
    if len(wrong):
        label = [f", label {name!r}" for name in labels.names] if array.shape[1] > 1 else [""]
        places = (f"item {i}{label[j]}: {array[i, j]}" for i, j in wrong)
        raise DataError("sample_weight: should be finite numbers, 0 or more" + listing(places, len(wrong)))
    rows, columns, _ = labels.entries()
    if not array[rows, columns if array.shape[1] > 1 else 0].any():
        raise DataError("sample_weight: all known entries have weight zero, so there is nothing to learn from.")
    weights: Weights = (array / array[array > 0].mean()).astype(np.float32)
    weights.setflags(write=False)
    return weights
