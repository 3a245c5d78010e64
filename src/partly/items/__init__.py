"""Items to learn from, behind one small protocol: no other package needs to know what an item is made of.

`as_items` checks what a caller passes and turns it into items.
"""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from partly.errors import DataError
from partly.items.arrays import Arrays, features, image_array
from partly.items.columns import (
    as_frame,
    describe_text_columns,
    is_frame,
    is_mixed,
    reorder_features,
    reorder_table,
)
from partly.items.conditioning import Conditioning
from partly.items.contract import (
    Absent,
    Items,
    Kind,
    Origin,
    Statistics,
    identity_statistics,
    is_decoded,
    is_items,
    stream_batches,
    to_absent,
)
from partly.items.encoding import Encoding
from partly.items.image_files import ImageFiles, ImageSource
from partly.items.mapped_files import map_npy
from partly.items.precomputed import PrecomputedFeatures, source_items
from partly.items.sparse_rows import SparseRows, sparse_features
from partly.items.table_rows import TableRows, encode_as, frame_rows, matrix_rows
from partly.items.text_rows import TextRows, decode_texts, spool_texts, texts
from partly.labels.names import Names

__all__ = [
    "NUMBERS_ONLY",
    "Absent",
    "Arrays",
    "Conditioning",
    "Encoding",
    "ImageFiles",
    "ImageSource",
    "Items",
    "Kind",
    "Origin",
    "PrecomputedFeatures",
    "SparseRows",
    "Statistics",
    "TableRows",
    "TextRows",
    "are_images",
    "are_texts",
    "as_frame",
    "as_items",
    "as_matrix",
    "condition_like",
    "decode_texts",
    "describe_text_columns",
    "encode_like",
    "features",
    "frame_rows",
    "identity_statistics",
    "image_array",
    "input_columns",
    "is_decoded",
    "is_frame",
    "is_items",
    "is_mixed",
    "map_npy",
    "matrix_rows",
    "prepare_for_training",
    "prepare_like",
    "reorder_features",
    "reorder_table",
    "resize_like",
    "scoring_batch_size",
    "source_items",
    "sparse_features",
    "spool_texts",
    "standardize",
    "stream_batches",
    "texts",
    "to_absent",
    "to_numpy",
]

MAX_BATCH_PIXELS = 1 << 22  # of images that are scored together
NUMBERS_ONLY = (
    "The model was trained on numbers without missing values. Give such numbers, or train it on a table like this one."
)
BLOCK = 1 << 12  # items standardized at a time by default


def standardize(items: Items, mean: Tensor, inverse_scale: Tensor, block: int = BLOCK) -> Any:
    """Return all features [N, D] in memory with mean 0 and scale 1; sparse ones are only scaled and stay sparse."""
    if isinstance(items, SparseRows):
        rows = items.matrix if items.rows is None else items.matrix[items.rows]
        return sp.csr_array(rows * inverse_scale.numpy())
    x = np.empty((len(items), *items.shape), np.float32)
    for start in range(0, len(items), block):
        rows = slice(start, start + block)
        x[rows] = (items.take(rows) - mean).mul_(inverse_scale).numpy()
    return x


def as_matrix(items: Items) -> Any:
    """Return all items [N, *shape] in memory, at their original precision."""
    if isinstance(items, Arrays) and items.kind == "features":
        return items.exact
    return standardize(items, torch.zeros(()), torch.ones(()))


def scoring_batch_size(items: Items, limit: int) -> int:
    """Return how many items to score at a time: at most `limit`, and fewer for large images."""
    return max(1, min(limit, MAX_BATCH_PIXELS // math.prod(items.shape))) if items.kind == "pictures" else limit


def resize_like(items: Items, other: Items) -> Items:
    """Resize image files to the size of the images that a model was trained on; return other items unchanged."""
    return items.resize(other.shape[1]) if is_decoded(items) and other.kind == "pictures" else items


def prepare_for_training(items: Items) -> Items:
    """Encode the columns of tables and condition features: see `encoding` and `conditioning`."""
    items = items.encode() if isinstance(items, TableRows) else items
    return items.prepared if isinstance(items, Arrays) else items


def input_columns(items: Items) -> tuple[Names | None, tuple[int, ...]]:
    """Return the names and the shape of an item before the columns of a table are encoded."""
    if isinstance(items, TableRows):
        return items.column_names, (items.width,)
    if items.encoding is not None:
        return items.encoding.column_names if items.encoding.named else None, (len(items.encoding.columns),)
    return items.names, items.shape


def encode_like(items: Items, trained: Items) -> Items:
    """Encode the columns of a table like those of the training items."""
    if trained.encoding is not None and isinstance(items, Arrays | TableRows):
        return encode_as(items, trained.encoding)
    if isinstance(items, TableRows):
        items.refuse(NUMBERS_ONLY)
    return items


def condition_like(items: Items, trained: Items) -> Items:
    """Condition features like those of the training items; return other items unchanged."""
    if isinstance(items, Arrays) and items.kind == "features":
        return items.condition_as(trained.conditioning or None)
    return items


def prepare_like(items: Items, trained: Items) -> Items:
    """Prepare items for a model like its training items. Features that are already conditioned stay unchanged."""
    items = encode_like(resize_like(items, trained), trained)
    return items if items.conditioning is not None else condition_like(items, trained)


def as_items(x: Any, where: str = "X") -> Items:
    """Turn a matrix of features (also sparse), images uint8 [N, H, W, C] or a list of texts into items."""
    if is_items(x):
        return x
    x = to_numpy(x)
    if isinstance(x, list | tuple) and isinstance(next(iter(x), None), PurePath):
        raise DataError(f"{where} holds paths. Read the files of a folder: partly.read(FOLDER).items.")
    if sp.issparse(x):
        return sparse_features(x, where)
    if are_texts(x):
        return texts(list(x), where)
    return image_array(np.asarray(x), where) if are_images(x) else features(x, where)


def to_numpy(x: Any) -> Any:
    """Turn a torch tensor into an array, bfloat16 into float32; return anything else unchanged."""
    if not isinstance(x, Tensor):
        return x
    x = x.detach().cpu()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


def are_images(x: Any) -> bool:
    """Return whether an array holds images rather than features: it has four dimensions."""
    return getattr(x, "ndim", 2) == 4


def are_texts(x: Any) -> bool:
    """Return whether a list, an array or a table column holds texts, by its first cell."""
    if not isinstance(x, list | tuple) and getattr(x, "ndim", 2) != 1:
        return False
    return isinstance(next(iter(x), None), str)
