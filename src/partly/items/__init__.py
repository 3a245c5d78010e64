"""Items: what is learned from, behind one small protocol. Nobody else asks what an item is made of.

`as_items` is the door: what a caller has becomes items, checked, or is refused with the place and the way out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from partly.items.arrays import Arrays, features, pictures
from partly.items.columns import as_frame, in_order, is_frame, is_mixed, table_in_order, words_in
from partly.items.conditioning import Conditioning
from partly.items.contract import Absent, Items, Kind, Statistics, absent, as_they_are, is_decoded, is_items, streamed
from partly.items.encoding import Encoding
from partly.items.made_features import MadeFeatures, Origin, made_of, origin_of
from partly.items.mapped_files import map_npy
from partly.items.picture_files import PictureFiles, Source
from partly.items.sparse_rows import SparseRows, sparse_features
from partly.items.table_rows import TableRows, encoded_as, frame_rows, matrix_rows
from partly.items.text_rows import TextRows, spooled, texts, texts_of
from partly.labels.names import Names

__all__ = [
    "NUMBERS_ONLY",
    "Absent",
    "Arrays",
    "Conditioning",
    "Encoding",
    "Items",
    "Kind",
    "MadeFeatures",
    "Origin",
    "PictureFiles",
    "Source",
    "SparseRows",
    "Statistics",
    "TableRows",
    "TextRows",
    "absent",
    "are_pictures",
    "are_texts",
    "as_frame",
    "as_items",
    "as_matrix",
    "as_they_are",
    "as_trained",
    "at_once",
    "columns_in",
    "conditioned",
    "conditioned_like",
    "conditioning_of",
    "encoded_like",
    "encoding_of",
    "features",
    "frame_rows",
    "in_order",
    "is_decoded",
    "is_frame",
    "is_items",
    "is_mixed",
    "made_of",
    "map_npy",
    "matrix_rows",
    "origin_of",
    "pictures",
    "shown_as",
    "sparse_features",
    "spooled",
    "standardised",
    "streamed",
    "table_in_order",
    "texts",
    "texts_of",
    "untied",
    "words_in",
]

PIXELS = 1 << 22  # of pictures that are scored at a time
NUMBERS_ONLY = (
    "The model was trained on numbers, none of them missing. Give such, or train it on a table like this one."
)
BLOCK = 1 << 12  # items standardised at a time, where nobody says otherwise


def standardised(items: Items, mean: Tensor, inverse_scale: Tensor, block: int = BLOCK) -> Any:
    """All features [N, D], off their mean and at scale 1, in memory: for a solver that needs them at once. Sparse ones
    have no mean to take off and stay sparse."""
    if isinstance(items, SparseRows):
        rows = items.matrix if items.rows is None else items.matrix[items.rows]
        return sp.csr_array(rows * inverse_scale.numpy())
    x = np.empty((len(items), *items.shape), np.float32)
    for start in range(0, len(items), block):
        rows = slice(start, start + block)
        x[rows] = ((items.take(rows) - mean) * inverse_scale).numpy()
    return x


def as_matrix(items: Items) -> Any:
    """All items [N, *shape], in memory, with all digits that they were given with."""
    if isinstance(items, Arrays) and items.kind == "features":
        return items.exact
    return standardised(items, torch.zeros(()), torch.ones(()))


def at_once(items: Items, most: int) -> int:
    """How many items to score at a time: fewer of large pictures, of which a network makes something larger still."""
    return max(1, min(most, PIXELS // math.prod(items.shape))) if items.kind == "pictures" else most


def shown_as(items: Items, other: Items) -> Items:
    """These items as `other` ones are shown, where they can be shown at any size: to score them by a model that was
    trained on the others."""
    return items.sized(other.shape[1]) if is_decoded(items) and other.kind == "pictures" else items


def conditioned(items: Items) -> Items:
    """These items as a model is trained on them: see `encoding` and `conditioning`."""
    items = items.fitted() if isinstance(items, TableRows) else items
    return items.conditioned if isinstance(items, Arrays) else items


def conditioning_of(items: Items) -> Conditioning | None:
    """The conditioning of the items that a model is trained on, or was; None where they are taken as they are."""
    return getattr(items, "conditioning", None) or None


def encoding_of(items: Items) -> Encoding | None:
    """How the features that a model is trained on, or was, were made of the columns of a table; None where they are
    numbers."""
    return getattr(items, "encoding", None)


def columns_in(items: Items) -> tuple[Names | None, tuple[int, ...]]:
    """Names and shape of an item as it is given, before columns of a table are encoded."""
    if isinstance(items, TableRows):
        return items.column_names, (items.width,)
    encoding = encoding_of(items)
    if encoding is not None:
        return encoding.column_names if encoding.named else None, (len(encoding.columns),)
    return items.names, items.shape


def encoded_like(items: Items, trained: Items) -> Items:
    """These items with the columns of a table encoded as those of training were."""
    encoding = encoding_of(trained)
    if encoding is not None and isinstance(items, Arrays | TableRows):
        return encoded_as(items, encoding)
    if isinstance(items, TableRows):
        items.refuse(NUMBERS_ONLY)
    return items


def conditioned_like(items: Items, trained: Items) -> Items:
    """These features in the way of those that a model was trained on; all other items as they are."""
    if isinstance(items, Arrays) and items.kind == "features":
        return items.conditioned_as(conditioning_of(trained))
    return items


def as_trained(items: Items, trained: Items) -> Items:
    """These items as a model takes them that was trained on others. Features that are conditioned already stay so."""
    items = encoded_like(shown_as(items, trained), trained)
    return items if getattr(items, "conditioning", None) is not None else conditioned_like(items, trained)


def as_items(x: Any, where: str = "X") -> Items:
    """Items as they are; features [N, D] from an array or a SciPy sparse matrix; pictures [N, H, W, C] of uint8; a list
    or column of texts."""
    if is_items(x):
        return x
    x = untied(x)
    if sp.issparse(x):
        return sparse_features(x, where)
    if are_texts(x):
        return texts(list(x), where)
    return pictures(np.asarray(x), where) if are_pictures(x) else features(x, where)


def untied(x: Any) -> Any:
    """What somebody gives, a torch tensor as an array: without a gradient, bfloat16 as float32, which holds all of
    it."""
    if not isinstance(x, Tensor):
        return x
    x = x.detach().cpu()
    return (x.float() if x.dtype == torch.bfloat16 else x).numpy()


def are_pictures(x: Any) -> bool:
    """Whether an array that somebody gives is meant as pictures, and not as features: the one place that looks at
    it."""
    return getattr(x, "ndim", 2) == 4


def are_texts(x: Any) -> bool:
    """Whether somebody gives texts: a list, an array or a column of a table whose first cell is one."""
    if not isinstance(x, list | tuple) and getattr(x, "ndim", 2) != 1:
        return False
    return isinstance(next(iter(x), None), str)
